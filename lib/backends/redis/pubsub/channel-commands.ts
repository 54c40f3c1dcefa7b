import { chunksOf } from '../../chunks.js';
import type { ChannelKind } from '../links/link.js';

const CHANNEL_KINDS: readonly ChannelKind[] = ['channel', 'pattern', 'sharded'];
const MAX_CHANNELS_PER_COMMAND = 512;

/** Channels to subscribe to, or to unsubscribe from, grouped by the commands that do so. */
export class ChannelCommands {
  private readonly channels: Record<ChannelKind, string[]> = { channel: [], pattern: [], sharded: [] };

  add(kind: ChannelKind, channel: string): void {
    this.channels[kind].push(channel);
  }

  /** One for each command. */
  *groups(): Iterable<readonly [kind: ChannelKind, channels: readonly string[]]> {
    for (const kind of CHANNEL_KINDS) {
      // Sharded channels of one command must be in one slot, so each has its own command.
      const size = kind === 'sharded' ? 1 : MAX_CHANNELS_PER_COMMAND;
      for (const channels of chunksOf(this.channels[kind], size)) yield [kind, channels];
    }
  }
}
