import {
  currentLease,
  currentScope,
  inScopeOf,
  LockScope,
  latestCall,
  leasesWaitingFor,
  lockScopes,
  noteCall,
  outsideLocks,
  type ScopedLease,
  scopeAround,
  withoutEnded,
} from '../../../lib/engine/scope/lock-scope.js';

/** A lease of a service, as far as scopes know it. */
class FakeLease {
  live = true;
  released = false;

  constructor(
    readonly name: string,
    readonly service: object = SERVICE,
    readonly isStranger = false,
  ) {}

  get names(): readonly string[] {
    return this.name.split(', ');
  }

  /** A scope of this lease around the present flow. */
  scope(): LockScope {
    return new LockScope(this.scoped, scopeAround(this.scoped));
  }

  run<T>(work: (scope: LockScope) => T): T {
    const scope = this.scope();
    return lockScopes.run(scope, () => work(scope));
  }

  get scoped(): ScopedLease {
    return this as unknown as ScopedLease;
  }
}

const SERVICE = {};
const OTHER = {};

describe('a scope', () => {
  it('is live until its code has ended, or its lease has', () => {
    const lease = new FakeLease('a');
    const scope = lease.scope();
    expect([scope.live, scope.over]).toEqual([true, false]);
    lease.live = false; // lost
    expect([scope.live, scope.over]).toEqual([false, false]);
    lease.live = true;
    lease.released = true;
    expect(scope.over).toBe(true);
    lease.released = false;
    scope.end();
    expect([scope.live, scope.over]).toEqual([false, true]);
  });

  it('is inside of the scope in which it begins, unless that has ended', () => {
    const [outer, middle] = [new FakeLease('outer'), new FakeLease('middle')];
    outer.run((outermost) => {
      middle.run((inner) => {
        expect(inner.parent).toBe(outermost);
        inner.end();
        expect(new FakeLease('late').scope().parent).toBe(outermost);
        middle.released = true;
      });
      outer.released = true;
      expect(new FakeLease('late').scope().parent).toBeUndefined();
    });
    expect(new FakeLease('alone').scope().parent).toBeUndefined();
  });

  it('shows its lease, unless it is one of a multi-lock', () => {
    const [lease, multi] = [new FakeLease('a'), new FakeLease('a, b')];
    expect(new LockScope(lease.scoped, undefined).shown).toBe(lease);
    expect(new LockScope(lease.scoped, undefined, multi.scoped).shown).toBe(multi);
  });
});

describe('a chain of scopes', () => {
  it('drops all scopes that have ended, wherever they are', () => {
    const leases = ['1', '2', '3', '4', '5'].map((name) => new FakeLease(name));
    const scopes: LockScope[] = [];
    for (const lease of leases) scopes.push(new LockScope(lease.scoped, scopes.at(-1)));
    scopes[4].end();
    leases[1].released = true;
    scopes[2].end();
    const kept = withoutEnded(scopes[4]);
    expect([kept, kept?.parent, kept?.parent?.parent]).toEqual([scopes[3], scopes[0], undefined]);
    scopes[0].end();
    scopes[3].end();
    expect(withoutEnded(scopes[4])).toBeUndefined();
    expect(withoutEnded(undefined)).toBeUndefined();
  });

  it('begins anew with a stranger, which sees only scopes that were opened inside its own', () => {
    const [outer, stranger] = [new FakeLease('outer'), new FakeLease('stranger', SERVICE, true)];
    outer.run(() => {
      expect(scopeAround(stranger.scoped)).toBeUndefined();
      stranger.run((own) => {
        expect(own.parent).toBeUndefined();
        new FakeLease('inner').run((inner) => expect(scopeAround(stranger.scoped)).toBe(inner));
        expect(scopeAround(stranger.scoped)).toBe(own);
        expect([own.outside, stranger.scope().outside]).toEqual([[outer], []]);
        expect(scopeAround(new FakeLease('another', SERVICE, true).scoped)).toBeUndefined();
      });
      expect(scopeAround(new FakeLease('member').scoped)).toBe(lockScopes.getStore());
    });
  });
});

describe('the scope of the running flow', () => {
  it('is the innermost one that is live', () => {
    expect(currentScope()).toBeUndefined();
    const [outer, inner] = [new FakeLease('outer'), new FakeLease('inner')];
    outer.run((outermost) =>
      inner.run((innermost) => {
        expect(currentScope()).toBe(innermost);
        inner.live = false;
        expect(currentScope()).toBe(outermost);
        outer.live = false;
        expect(currentScope()).toBeUndefined();
      }),
    );
  });

  it('is one of a service if one of its live scopes is', () => {
    const [outer, inner] = [new FakeLease('outer', OTHER), new FakeLease('inner')];
    outer.run(() =>
      inner.run(() => {
        expect([inScopeOf(SERVICE), inScopeOf(OTHER), inScopeOf({})]).toEqual([true, true, false]);
        inner.live = false;
        expect([inScopeOf(SERVICE), inScopeOf(OTHER)]).toEqual([false, true]);
        outer.live = false;
        expect(inScopeOf(OTHER)).toBe(false);
      }),
    );
    expect(inScopeOf(SERVICE)).toBe(false);
  });

  it('notes each acquisition that begins directly in it, by numbers that grow', () => {
    const [outer, inner] = [new FakeLease('outer'), new FakeLease('inner')];
    const before = latestCall();
    noteCall();
    expect(latestCall()).toBe(before);
    outer.run((outermost) => {
      expect(outermost.lastCall).toBe(0);
      noteCall();
      inner.run((innermost) => {
        noteCall();
        expect([outermost.lastCall, innermost.lastCall, latestCall()]).toEqual([before + 1, before + 2, before + 2]);
      });
      noteCall();
      expect(outermost.lastCall).toBe(before + 3);
    });
  });
});

describe('the leases that wait for the running flow', () => {
  const waiting = (service = SERVICE) => [...leasesWaitingFor(service)].map((lease) => lease.name);

  it('are those of the service around it, also if they were released or lost, until their bodies end', () => {
    expect(waiting()).toEqual([]);
    const [outer, inner] = [new FakeLease('outer'), new FakeLease('inner')];
    outer.run((outermost) =>
      new FakeLease('elsewhere', OTHER).run(() =>
        inner.run(() => {
          expect([waiting(), waiting(OTHER)]).toEqual([['inner', 'outer'], ['elsewhere']]);
          inner.released = true;
          outer.live = false;
          expect(waiting()).toEqual(['inner', 'outer']);
          outermost.end();
          expect(waiting()).toEqual(['inner']);
        }),
      ),
    );
  });

  it('include those around strangers, through any number of these, until they are released', () => {
    const [outer, elsewhere] = [new FakeLease('outer'), new FakeLease('elsewhere', OTHER)];
    const strangers = ['1', '2'].map((name) => new FakeLease(`stranger ${name}`, SERVICE, true));
    outer.run(() =>
      elsewhere.run(() =>
        strangers[0].run(() =>
          strangers[1].run(() => {
            expect(waiting()).toEqual(['stranger 2', 'stranger 1', 'outer']);
            expect(waiting(OTHER)).toEqual(['elsewhere']);
            outer.released = true;
            expect(waiting()).toEqual(['stranger 2', 'stranger 1']);
            // It is not kept by those that begin later.
            expect(new FakeLease('next', SERVICE, true).scope().outside).toEqual([
              strangers[1],
              strangers[0],
              elsewhere,
            ]);
          }),
        ),
      ),
    );
  });

  it('do not include what had ended before a stranger began', () => {
    const [outer, released] = [new FakeLease('outer'), new FakeLease('released')];
    outer.run((outermost) =>
      released.run(() => {
        outermost.end();
        released.released = true;
        const stranger = new FakeLease('stranger', SERVICE, true);
        stranger.run((scope) => {
          expect(waiting()).toEqual(['stranger']);
          expect(scope.outside).toEqual([]);
          const next = new FakeLease('next', SERVICE, true);
          stranger.released = true;
          scope.end();
          expect(next.scope().outside).toEqual([]);
        });
      }),
    );
  });
});

describe('currentLease()', () => {
  it('is the innermost lease that was not given back, or the one with a name', () => {
    expect(currentLease()).toBeUndefined();
    const [outer, inner] = [new FakeLease('a, b'), new FakeLease('b, c')];
    outer.run(() =>
      inner.run((innermost) => {
        expect([currentLease(), currentLease('a'), currentLease('b'), currentLease('d')]).toEqual([
          inner,
          outer,
          inner,
          undefined,
        ]);
        inner.live = false; // lost
        expect([currentLease(), currentLease('c')]).toEqual([inner, inner]);
        innermost.end();
        expect([currentLease(), currentLease('b'), currentLease('c')]).toEqual([outer, outer, undefined]);
        outer.released = true;
        expect([currentLease(), currentLease('a')]).toEqual([undefined, undefined]);
      }),
    );
  });

  it('is the multi-lock whose member it is, and with a name the member', () => {
    const [member, multi] = [new FakeLease('a'), new FakeLease('a, b')];
    lockScopes.run(new LockScope(member.scoped, undefined, multi.scoped), () => {
      expect([currentLease(), currentLease('a'), currentLease('b')]).toEqual([multi, member, undefined]);
    });
  });
});

describe('outsideLocks()', () => {
  it('runs work outside of all scopes, and returns its result', async () => {
    expect(outsideLocks(() => 'alone')).toBe('alone');
    await new FakeLease('a').run(async () => {
      expect(outsideLocks(() => [lockScopes.getStore(), 'result'])).toEqual([undefined, 'result']);
      expect(await outsideLocks(async () => Promise.resolve().then(() => lockScopes.getStore()))).toBeUndefined();
      expect(lockScopes.getStore()).toBeDefined();
    });
  });
});
