import { BadRequestException, type PipeTransform } from '@nestjs/common';

export class ParseQuantityPipe implements PipeTransform<unknown, number> {
  constructor(private readonly least = 1) {}

  transform(value: unknown): number {
    if (Number.isSafeInteger(value) && (value as number) >= this.least) return value as number;
    throw new BadRequestException(`quantity must be a whole number, at least ${this.least}`);
  }
}
