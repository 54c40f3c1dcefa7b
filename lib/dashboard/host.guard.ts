import { isIP } from 'node:net';
import { type CanActivate, type ExecutionContext, HttpException } from '@nestjs/common';
import { originsOf, type RedisLockDashboardOptions } from './dashboard.options.js';
import type { HttpRequest } from './http.js';

const MISDIRECTED = 421;

/**
 * Serves the dashboard only under its own hosts. An attacker's name can lead to the address of the dashboard (DNS
 * rebinding), and then the attacker's page is of the same origin for the browser of somebody whom a network guard lets
 * in. The header `Host` still has the attacker's name.
 *
 * The hosts are those of the option `origin`. Without it, a dashboard with guards accepts any host, because a guard
 * that asks for a password or a cookie is safe, and one without guards accepts the hosts that no DNS server of an
 * attacker can answer for: IP addresses and localhost.
 */
export class HostGuard implements CanActivate {
  private readonly origins: readonly URL[];
  private readonly isGuarded: boolean;

  constructor({ origin, guards = [] }: Pick<RedisLockDashboardOptions, 'origin' | 'guards'>) {
    this.origins = originsOf(origin).map((own) => new URL(own));
    this.isGuarded = guards.length > 0;
  }

  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<HttpRequest>();
    const host = headers.host ?? headers[':authority'];
    if (this.isAllowed(typeof host === 'string' ? host : '')) return true;
    throw new HttpException(
      'The dashboard is not served under this host. The option origin of RedisLockDashboardModule lists the origins under which it is.',
      MISDIRECTED,
    );
  }

  private isAllowed(host: string): boolean {
    if (this.origins.length > 0) return this.origins.some((own) => toUrl(own.protocol, host)?.host === own.host);
    if (this.isGuarded) return true;
    const hostname = toUrl('http:', host)?.hostname ?? '';
    return /^(.+\.)?localhost$/.test(hostname) || isIP(hostname.replace(/^\[|\]$/g, '')) !== 0;
  }
}

/** `undefined` if it is not a host with or without a port. */
function toUrl(protocol: string, host: string): URL | undefined {
  const url = `${protocol}//${host}`;
  return /^[\w.:[\]-]+$/.test(host) && URL.canParse(url) ? new URL(url) : undefined;
}
