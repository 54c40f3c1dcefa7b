import { make, setText } from './dom.js';
import { releaseLock } from './feed.js';
import { ago, until } from './live-time.js';
import { placeOf } from './lock-table.js';

/** All that is known of one lock, and the form that releases it by force: `<lock-dialog>`. */
class LockDialog extends HTMLElement {
  #dialog = make('dialog', { 'aria-labelledby': 'lock-title', close: () => this.#closed() });
  #facts = make('div');
  #note = make('p', { role: 'status', class: 'note' });
  #form = make('div');
  #release;
  #lock;
  /** Who held it when it was opened: a release is about them, not about who holds it by now. */
  #owners = [];
  #token;
  /** It had more owners than are shown. */
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

  /** The name of the lock that is shown. */
  get shown() {
    return this.#lock?.name;
  }

  get #shown() {
    return { owners: this.#owners, token: this.#token, others: this.#others };
  }

  open(lock, readOnly) {
    this.#dialog.querySelector('h2').textContent = lock.name;
    this.#owners = lock.owners.map(({ owner }) => owner);
    this.#token = lock.token ?? undefined;
    this.#others = lock.ownerCount > lock.owners.length;
    this.#release = make('button', { class: 'danger', 'aria-describedby': 'release-warning' }, 'Release by force');
    this.#form.replaceChildren(...(readOnly ? [] : [this.#releaseForm(lock.name)]));
    this.#dialog.showModal();
    this.update(lock);
  }

  /** @param lock null: it is not held any more */
  update(lock) {
    const isSame = lock !== null && this.#isHeldAsBefore(lock);
    this.#release.disabled = !isSame;
    setText(this.#note, noteOn(lock, isSame, this.#form.hasChildNodes()));
    this.#facts.hidden = lock === null;
    if (lock === null) return;
    this.#lock = lock;
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
        : [make('h3', {}, 'Waited for by'), make('ul', {}, ...lock.waiters.map(waiterItem))]),
    );
  }

  /** Of some locks no owner is known. */
  #isHeldAsBefore({ owners }) {
    return owners.length + this.#owners.length === 0 || owners.some(({ owner }) => this.#owners.includes(owner));
  }

  #closed() {
    this.#lock = undefined;
    this.dispatchEvent(new CustomEvent('closed'));
  }

  #releaseForm(name) {
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
      'The holder may still be working: what it protects by this lock can then be changed by two at once. Its signal is aborted, but nothing stops code that does not listen to it.';
    return make(
      'form',
      { submit },
      make('h3', {}, 'Release by force'),
      make('p', { id: 'release-warning' }, warning),
      make('label', { for: 'reason' }, 'Reason, for the log'),
      reason,
      button,
      outcome,
    );
  }
}

customElements.define('lock-dialog', LockDialog);

function noteOn(lock, isSame, canRelease) {
  if (lock === null) return 'It is not held any more.';
  if (isSame) return '';
  return `Somebody else holds it by now.${canRelease ? ' To release it, close this and open it again.' : ''}`;
}

function fact(title, value) {
  return [make('dt', {}, title), make('dd', {}, value)];
}

function ownerItem(owner) {
  const { method, since, atLeast, leaseEnds } = owner;
  return make(
    'li',
    {},
    make('strong', {}, placeOf(owner)),
    method ? ` in ${method}` : '',
    ', for ',
    ago(since, { prefix: atLeast ? 'at least ' : '' }),
    ', lease left: ',
    until(leaseEnds),
    make('code', {}, owner.owner),
  );
}

function waiterItem(waiter) {
  const { method, waiters, since } = waiter;
  const callers = waiters === 1 ? '1 caller' : `${waiters} callers`;
  return make(
    'li',
    {},
    make('strong', {}, placeOf(waiter)),
    method ? ` in ${method}` : '',
    `: ${callers}, the first for `,
    ago(since),
  );
}

function more(count) {
  return count > 0 ? [make('li', {}, `and ${count} more`)] : [];
}
