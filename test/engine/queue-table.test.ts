import { type LocalQueue, type QueueKind, QueueTable } from '../../lib/engine/queue-table.js';

describe('the table of the queues', () => {
  const queueOf = (kind: QueueKind, name = 'order') => ({ kind, name }) as LocalQueue;
  const KINDS: readonly QueueKind[] = ['reentrant', 'read', 'fair', 'fenced', 'flight'];

  const filled = () => {
    const table = new QueueTable();
    const queues = KINDS.map((kind) => queueOf(kind));
    for (const queue of queues) table.add(queue);
    const [reentrant, readWrite, fair, fenced, flight] = queues;
    return { table, queues, reentrant, readWrite, fair, fenced, flight };
  };

  it('has a queue for each type of lock under one name, and one more for single flights', () => {
    const { table, reentrant, readWrite, fair, fenced, flight } = filled();
    expect(table.get('reentrant', 'order')).toBe(reentrant);
    expect(table.get('read', 'order')).toBe(readWrite);
    expect(table.get('fair', 'order')).toBe(fair);
    expect(table.get('fenced', 'order')).toBe(fenced);
    expect(table.get('flight', 'order')).toBe(flight);
    expect(table.size).toBe(5);
  });

  it('has one queue for the readers and writers of a name', () => {
    const { table, readWrite } = filled();
    expect(table.get('write', 'order')).toBe(readWrite);
  });

  it('has one more queue for permits, and one for callers of whom only the newest waits', () => {
    const { table, reentrant } = filled();
    const permits = queueOf('permits');
    const newest = { ...queueOf('reentrant'), kind: 'newest' as QueueKind };
    table.add(permits);
    table.add(newest);
    expect(table.get('permits', 'order')).toBe(permits);
    expect(table.get('newest', 'order')).toBe(newest);
    expect(table.get('reentrant', 'order')).toBe(reentrant);
    expect(table.size).toBe(7);
    table.remove(newest);
    table.remove(permits);
    expect([table.get('permits', 'order'), table.get('newest', 'order'), table.size]).toEqual([
      undefined,
      undefined,
      5,
    ]);
  });

  it('lists the queues that exist when it is asked, whatever comes and goes meanwhile', () => {
    const { table, queues } = filled();
    const listed = table.values();
    const seen: LocalQueue[] = [];
    for (const queue of listed) {
      seen.push(queue);
      table.remove(queue);
      table.add(queueOf('flight', `other:${seen.length}`));
    }
    expect(new Set(seen)).toEqual(new Set(queues));
    expect(seen).toHaveLength(5);
    expect(table.size).toBe(5);
  });

  it('lists the queues of a name, and no others', () => {
    const { table, queues } = filled();
    const other = queueOf('fenced', 'stock');
    table.add(other);
    expect(new Set(table.named('order'))).toEqual(new Set(queues));
    expect(table.named('stock')).toEqual([other]);
    expect(table.named('parcel')).toEqual([]);
    expect(new Set(table.values())).toEqual(new Set([...queues, other]));
  });

  it.each(KINDS)('removes a queue only if no other has replaced it: kind %s', (kind) => {
    const table = new QueueTable();
    const [former, present] = [queueOf(kind), queueOf(kind)];
    table.add(former);
    table.add(present);
    table.remove(former);
    expect(table.named('order')).toEqual([present]);
    table.remove(present);
    expect(table.size).toBe(0);
  });

  it('keeps the queues that are left after many were removed', () => {
    const { table, queues } = filled();
    for (let i = 0; i < 5_000; i++) {
      const queue = queueOf('reentrant', `order:${i}`);
      table.add(queue);
      table.remove(queue);
    }
    const visited: LocalQueue[] = [];
    table.forEach((queue) => void visited.push(queue));
    expect(new Set(visited)).toEqual(new Set(queues));
  });
});
