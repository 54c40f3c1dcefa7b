import type { ConnectionContext } from './connection-context.js';
import type { Link, SentCommand, SubscriberConnection } from './link.js';

/** What a {@link Topology} reports about our own client. */
export interface TopologyEvents {
  /** It has connected or reconnected. Another server may answer from now on. */
  ready(): void;
  /** A connection failed, and is tried again. Without secrets. */
  failed(error: Error): void;
}

/** Servers of another kind than those of a `connection` option. */
export class TopologyFactory {
  constructor(readonly open: (context: ConnectionContext) => Topology) {}
}

/**
 * The servers of a `connection` option: a single server, Sentinel, or a cluster. It hides the client library. {@link
 * SentCommand} records whatever that library repeats, redirects or queues. A client that was borrowed from the user is
 * never closed, connected or listened to.
 */
export interface Topology {
  /** The name of the client library in logs and errors. */
  readonly library: string;
  /** For logs; without credentials. */
  readonly description: string;
  /**
   * A `connection` option with which another thread can connect to the same servers, unless it has functions. Left out: the
   * servers are in this process.
   */
  readonly settings?: unknown;
  /** Its connections use TLS. */
  readonly usesTls: boolean;
  /** The client is ours, and not borrowed from the user. */
  readonly owned: boolean;
  readonly isCluster: boolean;
  /** The user in the settings, as far as it can be seen. Left out: the user `default`, or not known. */
  readonly user?: string | undefined;
  /** The number of the requested database. */
  readonly database: number;
  /** Whether to destroy connections that leave commands unanswered, with {@link SentCommand.destroySocket}. */
  readonly replacesSilentConnections: boolean;
  /** Why there is no answer: undefined while there is a connection, as far as is known. */
  readonly connectionError: Error | undefined;
  /**
   * The command of the application that this connection of a borrowed client waits for, so that all others wait behind
   * it: `BLPOP`. `undefined`: there is none, as far as can be seen.
   */
  blockedBy?(socket: object): string | undefined;
  /** The client has ended and will never answer again. */
  readonly ended: boolean;
  /** The error of a command after that. */
  endedError(): Error;

  /** Connects a client of ours in the background. */
  connect(events: TopologyEvents): void;
  /**
   * Sends a command. Never throws.
   *
   * @param key in a cluster, the command goes to the master of its slot; without one, to any master
   * @param failOnTryAgain in a cluster, TRYAGAIN is returned as an error instead of repeated, because parts of the
   *   command may already have been executed
   */
  send(name: string, args: readonly string[], key?: string, failOnTryAgain?: boolean): SentCommand;

  /** The name of the node that has a slot; '' when it is not known, when no slot is given, and outside of a cluster. */
  nodeOfSlot(slot: number | undefined): string;
  /** False when the cluster does not have this `host:port`, or no longer has it, and when the client has ended. */
  has(address: string): boolean;
  /** Asks the cluster again which node has which slot. */
  refresh(): void;
  /**
   * The master that has a slot, or any master when no slot is given; undefined when it is not known.
   *
   * @param random chooses among the masters: a number in [0, 1)
   */
  master(slot: number | undefined, random: number): Link | undefined;
  /** All masters, in the order of their addresses. */
  masters(): readonly Link[];
  /** The masters that have slots, but could not be reached. */
  unreachableMasters(): readonly string[];
  /** The master that a connection leads to; undefined when there is none any more. */
  masterOn(socket: object | undefined): Link | undefined;

  /**
   * A new connection for subscriptions. Undefined when no node is known.
   *
   * @param slot of the channels, if they are sharded
   */
  subscriber(slot: number | undefined): SubscriberConnection | undefined;
  /** Connections of ours to the same servers, for commands that block them. They are connected by {@link connect}. */
  duplicate(): Topology;
  /** Connects again after a server has said that it is a replica. */
  leaveReplica(): void;
  /** Closes what is ours; unanswered commands fail. Settles when the connections are closed. */
  close(): Promise<void>;
}
