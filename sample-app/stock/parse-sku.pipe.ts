import { BadRequestException, Injectable, type PipeTransform } from '@nestjs/common';

@Injectable()
export class ParseSkuPipe implements PipeTransform<unknown, string> {
  transform(value: unknown): string {
    if (typeof value === 'string' && /^[A-Za-z0-9-]{1,40}$/.test(value)) return value;
    throw new BadRequestException('an SKU must have 1 to 40 letters, digits and hyphens');
  }
}
