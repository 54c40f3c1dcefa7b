/**
 * A `credentialsProvider` of node-redis that sends new credentials, such as tokens, for as long as it is subscribed to.
 */
export interface StreamingProvider {
  readonly type: 'streaming-credentials-provider';
  subscribe(listener: Listener): Promise<[credentials: object, subscription: Subscription]>;
  onReAuthenticationError(error: Error): void;
}

interface Listener {
  onNext(credentials: object): void;
  onError(error: Error): void;
}

interface Subscription {
  dispose(): void;
}

/** Other providers are asked once for each connection, and keep nothing. */
export function isStreaming(provider: unknown): provider is StreamingProvider {
  return (provider as Partial<StreamingProvider> | undefined)?.type === 'streaming-credentials-provider';
}

/**
 * The subscription of one client to its credentials, which ends with the connection of the client. node-redis would
 * keep it when a connection breaks, and then authenticate on that connection with each new token, and fail.
 */
export class CredentialsSubscription {
  private readonly subscriptions: Subscription[] = [];
  private ended = false;

  constructor(private readonly provider: StreamingProvider) {}

  /** The provider for the client. */
  get forClient(): StreamingProvider {
    const { provider } = this;
    return {
      type: provider.type,
      subscribe: async (listener) => {
        const [credentials, subscription] = await provider.subscribe({
          onNext: (next) => {
            if (!this.ended) listener.onNext(next);
          },
          onError: (error) => {
            if (!this.ended) listener.onError(error);
          },
        });
        this.subscriptions.push(subscription);
        if (this.ended) this.end();
        return [credentials, { dispose: () => this.end() }];
      },
      onReAuthenticationError: (error) => {
        if (!this.ended) provider.onReAuthenticationError(error);
      },
    };
  }

  /** Ends it, also while it is being opened. */
  end(): void {
    this.ended = true;
    for (const subscription of this.subscriptions.splice(0)) subscription.dispose();
  }
}
