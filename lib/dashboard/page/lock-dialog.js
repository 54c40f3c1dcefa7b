import { foreign, make, setText } from './dom.js';
import { releaseLock } from './feed.js';
import { ago, until } from './live-time.js';
import { placeOf } from './lock-table.js';

/**
 * The details of one lock, and the form that releases it by force: `<lock-dialog>`. It emits `closed` when the user has
 * closed it.
 */
class LockDialog extends HTMLElement {
  #dialog = make('dialog', { 'aria-labelledby': 'lock-title', close: () => this.#closed() });
  #facts = make('div');
  #note = make('p', { role: 'status', class: 'note' });
  #form = make('div');
  #release;
  #name;
  /** The holders when the dialog was opened. Only they are released, not the current holders. */
  #owners;
  #token;
  /** There were more owners than are shown. */
  #others = false;

  connectedCallback() {
    if (this.firstChild) return;
    const close = make('button', { type: 'button', class: 'close', click: () => this.#dialog.close() }, 'Close');
    this.#dialog.append(
      make('h2', { id: 'lock-title', tabindex: '-1', autofocus: true }),
      this.#facts,
      this.#note,
      this.#form,
      close,
    );
    this.append(this.#dialog);
  }

  /** The name of the shown lock, or undefined. */
  get shown() {
    return this.#name;
  }

  get #shown() {
    return { owners: this.#owners, token: this.#token, others: this.#others };
  }

  open(name) {
    this.#name = name;
    this.#owners = undefined;
    this.#release = undefined;
    this.#dialog.querySelector('h2').replaceChildren(foreign(name));
    this.#facts.replaceChildren();
    this.#form.replaceChildren();
    setText(this.#note, 'The lock is being read.');
    if (!this.#dialog.open) this.#dialog.showModal();
  }

  close() {
    this.#name = undefined;
    this.#dialog.close();
  }

  /**
   * @param lock null if it is not held
   * @param place the environment to show in the release form; undefined hides the form
   */
  update(lock, place) {
    if (lock !== null && this.#owners === undefined) this.#seen(lock, place);
    const isSame = lock !== null && this.#isHeldAsBefore(lock);
    if (this.#release) this.#release.disabled = !isSame;
    setText(this.#note, this.#noteOn(lock, isSame));
    this.#facts.hidden = lock === null;
    if (lock === null) return;
    this.#facts.replaceChildren(
      make(
        'dl',
        {},
        ...fact('Type', lock.type),
        ...fact('Lease left', until(lock.leaseEnds)),
        ...fact('Fencing token', lock.token === null ? 'not known here' : String(lock.token)),
        ...fact('Waiting', String(lock.waiting)),
      ),
      make('h3', {}, lock.ownerCount === 1 ? 'Held by' : `Held by ${lock.ownerCount}`),
      make('ul', {}, ...lock.owners.map(ownerItem), ...more(lock.ownerCount - lock.owners.length)),
      ...(lock.waiters.length === 0
        ? []
        : [
            make('h3', {}, lock.waiterCount === 1 ? '1 process waits' : `${lock.waiterCount} processes wait`),
            make('ul', {}, ...lock.waiters.map(waiterItem), ...more(lock.waiterCount - lock.waiters.length)),
          ]),
    );
  }

  /** Remembers the holders. */
  #seen({ name, owners, ownerCount, token }, place) {
    this.#owners = owners.map(({ owner }) => owner);
    this.#token = token ?? undefined;
    this.#others = ownerCount > owners.length;
    if (place === undefined) return;
    this.#release = make('button', { class: 'danger', 'aria-describedby': 'release-warning' }, 'Release by force');
    this.#form.replaceChildren(this.#releaseForm(name, place));
  }

  #noteOn(lock, isSame) {
    if (isSame) return '';
    if (lock === null) return this.#owners === undefined ? 'It is not held.' : 'It is not held any more.';
    return `Somebody else holds it by now.${this.#release ? ' To release it, close this and open it again.' : ''}`;
  }

  /** For some locks, no owner is known. */
  #isHeldAsBefore({ owners }) {
    return owners.length + this.#owners.length === 0 || owners.some(({ owner }) => this.#owners.includes(owner));
  }

  #closed() {
    // Not if the page has closed the dialog or shows another lock by now.
    if (this.#name === undefined || this.#dialog.open) return;
    this.#name = undefined;
    this.dispatchEvent(new CustomEvent('closed'));
  }

  #releaseForm(name, place) {
    const reason = make('input', {
      id: 'reason',
      required: true,
      minlength: '3',
      maxlength: '500',
      autocomplete: 'off',
    });
    const button = this.#release;
    const outcome = make('p', { role: 'status' });
    const submit = async (event) => {
      event.preventDefault();
      button.disabled = true;
      const failure = await releaseLock(name, this.#shown, reason.value);
      outcome.className = failure === undefined ? '' : 'failed';
      outcome.textContent = failure ?? 'It was released.';
      button.disabled = failure === undefined;
    };
    const warning =
      'The code of the holder may still be running. Then two callers can change the protected data at the same time. The signal of the holder is aborted, but nothing stops code that does not listen to it.';
    return make(
      'form',
      { submit },
      make('h3', {}, 'Release by force'),
      make('p', { id: 'release-warning' }, warning),
      place,
      make('label', { for: 'reason' }, 'Reason, for the log'),
      reason,
      button,
      outcome,
    );
  }
}

customElements.define('lock-dialog', LockDialog);

function fact(title, value) {
  return [make('dt', {}, title), make('dd', {}, value)];
}

function ownerItem(owner) {
  const { method, since, atLeast, leaseEnds } = owner;
  return make(
    'li',
    {},
    make('strong', {}, placeOf(owner)),
    ...inMethod(method),
    ', for ',
    ago(since, { prefix: atLeast ? 'at least ' : '' }),
    ', lease left: ',
    until(leaseEnds),
    make('code', {}, foreign(owner.owner)),
  );
}

function waiterItem(waiter) {
  const { position, method, waiters, since } = waiter;
  const callers = waiters === null ? [] : [waiters === 1 ? ': 1 caller' : `: ${waiters} callers`];
  const time = since === null ? [] : [waiters === 1 ? ', for ' : ', the first for ', ago(since)];
  return make(
    'li',
    {},
    position === null ? '' : `${position}. `,
    make('strong', {}, placeOf(waiter)),
    ...inMethod(method),
    ...callers,
    ...time,
  );
}

function inMethod(method) {
  return method ? [' in ', foreign(method)] : [];
}

function more(count) {
  return count > 0 ? [make('li', {}, `and ${count} more`)] : [];
}
