/** The text of `--help`. */
export const USAGE = `Shows distributed locks, whether or not an application is running.

  nestjs-redis-lock ls [--match PATTERN]      which locks are held, by whom and for how long; which semaphores and latches there are
  nestjs-redis-lock inspect NAME              everything about one lock, semaphore or latch
  nestjs-redis-lock watch [--match PATTERN]   the same as ls, again and again; Ctrl+C ends it
  nestjs-redis-lock clients                   the processes that hold locks or wait for them
  nestjs-redis-lock release NAME --yes --reason TEXT
                                              frees a lock, whoever holds it; without --yes it shows the holder
  nestjs-redis-lock doctor                    whether this Redis and this user are fit for locks

Where Redis is
  --url URL         redis://user:password@host:6379/0, rediss:// for TLS. Default: the variable REDIS_URL,
                    which does not show the password to whoever lists the processes
  --cluster         the URL is a node of a Redis Cluster
  --prefix PREFIX   the keyPrefix of the application. Default: lock:

Options
  --json            one JSON document instead of text (not for watch)
  --match PATTERN   names as in Redis: *, ?, [abc]
  --count N         ls: one page of about N locks instead of all of them
  --cursor CURSOR   ls: the page that follows; the page before names its cursor
  --interval TIME   watch: how often. Default: 2s
  --yes             release: really do it
  --reason TEXT     release: why, for the log of your shell
  --help, --version

A name that begins with a dash follows '--':  nestjs-redis-lock inspect -- -name

Ends with 0 when all is well, 1 after an unexpected error, 2 when the command line is wrong, 3 when the lock is not held,
4 when Redis gives no answer, 5 when doctor has found something to change.
`;
