import {
  BadRequestException,
  ConflictException,
  ForbiddenException,
  InternalServerErrorException,
  type LoggerService,
  NotFoundException,
} from '@nestjs/common';
import type { ForceReleaseOptions, InspectedOwner, LockService } from '../core.js';
import { originsOf, type RedisLockDashboardOptions } from './dashboard.options.js';
import type { HttpRequest } from './http.js';
import type { RecentEvents } from './recent-events.js';
import { isForeign } from './same-origin.js';

/** A form on another site cannot send this header, and a script on another site is not allowed to. */
const HEADER = 'x-redis-lock-dashboard';
const REASON = { shortest: 3, longest: 500 };

interface ReleaseRequest {
  readonly name: string;
  readonly reason: string;
  /** The owners that the operator saw. If others hold the lock by now, nothing is released. Undefined: any holder. */
  readonly owners: readonly string[] | undefined;
  /** The fencing token that was shown with them. */
  readonly token: number | undefined;
  /**
   * There were more owners than the page shows. All current owners are released, if one of the shown owners is
   * still among them.
   */
  readonly others: boolean;
}

/** Releases locks by force, only if this is switched on and with a reason, which is logged. */
export class ForcedRelease {
  constructor(
    private readonly locks: LockService,
    private readonly events: RecentEvents,
    private readonly logger: LoggerService,
    private readonly options: Pick<RedisLockDashboardOptions, 'readOnly' | 'userOf' | 'origin'>,
  ) {}

  /** @throws HttpException or an error of the lock service. Nothing was released then */
  async release(request: HttpRequest, nameInPath: string | undefined): Promise<void> {
    const { name, reason, ...shown } = this.check(request, nameInPath);
    const user = await this.userOf(request);
    const { owners: present } = await this.locks.inspect(name);
    const removed = await this.locks.removeHolders(name, meant(shown, present));
    if (removed.length === 0) {
      if (!(await this.locks.isLocked(name)))
        throw new NotFoundException(`'${name}' is not locked; nothing was released`);
      throw new ConflictException(`'${name}' is now held by somebody else; nothing was released`);
    }
    const holders = removed.map((owner) => {
      const client = present.find((other) => other.owner === owner)?.client;
      return client ? `${client.application} on ${client.host}, pid ${client.pid} (${owner})` : owner;
    });
    const text = inLog(
      `released by force${user ? ` by ${user}` : ''}: ${reason}; it was held by ${holders.join(' and ')}`,
    );
    this.logger.warn(`'${inLog(name)}' was ${text}`);
    this.events.add({ kind: 'released', name, method: '', text });
  }

  /** @throws InternalServerErrorException if the name of the operator is not known. Anonymous releases are refused */
  private async userOf(request: HttpRequest): Promise<string | undefined> {
    try {
      const user = (await this.options.userOf?.(request as never)) ?? undefined;
      if (user === undefined || typeof user === 'string') return user;
      throw new TypeError(`it returned a value of type ${typeof user}, not a text`);
    } catch (error) {
      this.logger.error(
        `The option userOf of RedisLockDashboardModule failed; nothing was released: ${inLog(String(error))}`,
      );
      throw new InternalServerErrorException(
        'The option userOf of the dashboard failed, see the log; nothing was released',
      );
    }
  }

  private check(request: HttpRequest, nameInPath: string | undefined): ReleaseRequest {
    const { headers, body } = request;
    if (this.options.readOnly !== false)
      throw new ForbiddenException('This dashboard is read-only; nothing was released. See its option readOnly.');
    if (headers[HEADER] === undefined)
      throw new ForbiddenException(
        `A release must come from the dashboard, with the header ${HEADER}; nothing was released`,
      );
    if (isForeign(request, originsOf(this.options.origin)))
      throw new ForbiddenException(
        'A release must come from the dashboard, not from a page of another origin; nothing was released. If a proxy changes the header Host, let it forward the original one; and see the option origin of the dashboard.',
      );
    const {
      name = nameInPath,
      reason,
      owners,
      token,
      others = false,
    } = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>;
    if (typeof name !== 'string' || (nameInPath !== undefined && name !== nameInPath))
      throw new BadRequestException('Give the name of one lock; nothing was released');
    const text = typeof reason === 'string' ? inLog(reason).trim() : '';
    if (text.length < REASON.shortest || text.length > REASON.longest)
      throw new BadRequestException(
        `Give a reason of ${REASON.shortest} to ${REASON.longest} characters for the log: a JSON body with "reason"; nothing was released`,
      );
    if (owners !== undefined && !(Array.isArray(owners) && owners.every((owner) => typeof owner === 'string')))
      throw new BadRequestException('owners must be a list of texts; nothing was released');
    if ((token !== undefined && !Number.isSafeInteger(token)) || typeof others !== 'boolean')
      throw new BadRequestException('token must be a whole number, and others true or false; nothing was released');
    return { name, reason: text, owners, token: token as number | undefined, others };
  }
}

/** @returns undefined: any holder */
function meant(
  { owners, token, others }: Omit<ReleaseRequest, 'name' | 'reason'>,
  present: readonly InspectedOwner[],
): ForceReleaseOptions | undefined {
  if (owners === undefined) return undefined;
  const holders = present.map(({ owner }) => owner);
  const areMeant = others && holders.some((owner) => owners.includes(owner));
  return { owners: areMeant ? [...owners, ...holders] : owners, fencingToken: token };
}

/** The text in one line, without characters that change its direction. */
function inLog(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu, ' ');
}
