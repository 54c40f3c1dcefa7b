import type { IncomingMessage } from 'node:http';
import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';

/** Lets in who comes from the same machine, and from no other site. A real shop asks who the user is. */
@Injectable()
export class LoopbackGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { socket, headers } = context.switchToHttp().getRequest<IncomingMessage>();
    const isHere = /^(::1|(::ffff:)?127\.)/.test(socket.remoteAddress ?? '');
    return isHere && /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(headers.host ?? '');
  }
}
