import type { Link, SentCommand, SubscriberConnection } from './link.js';

/** What a {@link Topology} reports about our own client. */
export interface TopologyEvents {
  /** It has connected, or connected again: what answers from now on may be another server. */
  ready(): void;
  /** A connection failed, and is tried again. Without secrets. */
  failed(error: Error): void;
}

/**
 * The servers that a `connection` option stands for: one, those behind Sentinels, or a cluster. It hides the client
 * library: whatever that repeats, redirects or queues shows in {@link SentCommand}. A client that was borrowed from the
 * user is never closed, connected or listened to.
 */
export interface Topology {
  /** How logs and errors call the client library. */
  readonly library: string;
  /** For logs; without credentials. */
  readonly description: string;
  /** The client is ours, and not borrowed from the user. */
  readonly owned: boolean;
  readonly isCluster: boolean;
  /** The number of the database that was asked for. */
  readonly database: number;
  /** Connections that leave commands unanswered are to be destroyed, by {@link SentCommand.destroySocket}. */
  readonly replacesSilentConnections: boolean;
  /** Why there is no answer: undefined while there is a connection, as far as is known. */
  readonly connectionError: Error | undefined;
  /** It will never answer again. */
  readonly ended: boolean;
  /** The error of a command after that. */
  endedError(): Error;

  /** Connects a client of ours in the background. */
  connect(events: TopologyEvents): void;
  /**
   * Sends a command. Never throws.
   *
   * @param key in a cluster, the command goes to the master of its slot; without one, to any master
   * @param failOnTryAgain in a cluster, TRYAGAIN is an answer, and not to be repeated: parts of the command may be
   * served already
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
   * A new connection to subscribe with; undefined when no node is known.
   *
   * @param slot of the channels, where they are sharded
   */
  subscriber(slot: number | undefined): SubscriberConnection | undefined;
  /** Connections of ours to the same servers, for commands that block them. They are connected by {@link connect}. */
  duplicate(): Topology;
  /** Connects again after a server has said that it is a replica. */
  leaveReplica(): void;
  /** Closes what is ours; unanswered commands fail. Settles when the connections are closed. */
  close(): Promise<void>;
}
