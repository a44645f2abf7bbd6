// The difference of two texts, line by line.

/** Cells of the table that finds what two texts share; beyond that all of one is replaced by all of the other. */
const MOST_CELLS = 4_000_000;
/** Unchanged lines that are shown around a change. */
const AROUND = 3;

/** How much of the rest of both is the same, for every place in both: the longest common subsequence. */
function table(before, after) {
  const width = after.length + 1;
  const cells = new Uint32Array((before.length + 1) * width);
  for (let one = before.length - 1; one >= 0; one -= 1) {
    for (let other = after.length - 1; other >= 0; other -= 1) {
      const at = one * width + other;
      cells[at] = before[one] === after[other] ? cells[at + width + 1] + 1 : Math.max(cells[at + width], cells[at + 1]);
    }
  }
  return (one, other) => cells[one * width + other];
}

function changed(before, after) {
  const removed = (line) => ({ kind: 'removed', line });
  const added = (line) => ({ kind: 'added', line });
  if ((before.length + 1) * (after.length + 1) > MOST_CELLS) return [...before.map(removed), ...after.map(added)];
  const left = table(before, after);
  const lines = [];
  let [one, other] = [0, 0];
  while (one < before.length && other < after.length) {
    if (before[one] === after[other]) {
      lines.push({ kind: 'same', line: before[one] });
      [one, other] = [one + 1, other + 1];
    } else if (left(one + 1, other) >= left(one, other + 1)) lines.push(removed(before[one++]));
    else lines.push(added(after[other++]));
  }
  return [...lines, ...before.slice(one).map(removed), ...after.slice(other).map(added)];
}

/** Lines as `{ kind, line }`: `same`, `removed`, `added`; and `{ kind: 'skipped', count }` for unchanged ones far from any change. */
export function difference(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  const shorter = Math.min(before.length, after.length) - start;
  while (end < shorter && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const same = (line) => ({ kind: 'same', line });
  const lines = [
    ...before.slice(0, start).map(same),
    ...changed(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map(same),
  ];
  const near = new Set();
  lines.forEach(({ kind }, n) => {
    if (kind !== 'same') for (let by = -AROUND; by <= AROUND; by += 1) near.add(n + by);
  });
  const shown = [];
  lines.forEach((line, n) => {
    if (near.has(n)) shown.push(line);
    else if (shown.at(-1)?.kind === 'skipped') shown.at(-1).count += 1;
    else shown.push({ kind: 'skipped', count: 1 });
  });
  return shown;
}
