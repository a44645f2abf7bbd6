// Lists in forms: entries are added, moved and removed; their fields are named `list[0].field`, as the API names them in its errors.
import { html, useEffect, useRef, useState } from './html.js';
import { words } from './words.js';

const text = words.agents.rows;
let last = 0;
const rowOf = (value) => ({ key: (last += 1), value });

/**
 * `children(name, value)` draws the fields of one. `label` names one, `empty` is a new one, `most` is how many there may be; where their
 * order says something, they can be moved.
 */
export function Rows({ name, label, add, values, empty = {}, most = 50, isOrdered = true, children }) {
  const [rows, setRows] = useState(() => values.map(rowOf));
  const list = useRef(null);
  /** What gets the focus after the next change. */
  const wanted = useRef(null);
  useEffect(() => {
    if (!wanted.current) return;
    list.current.querySelector(wanted.current)?.focus();
    wanted.current = null;
    // The form has changed, though nobody has typed.
    list.current.dispatchEvent(new Event('input', { bubbles: true }));
  }, [rows]);
  const change = (next, focus) => {
    wanted.current = focus;
    setRows(next);
  };
  const remove = (n) => change(rows.filter((_, other) => other !== n), ':scope > .button');
  const up = (n) => change([...rows.slice(0, n - 1), rows[n], rows[n - 1], ...rows.slice(n + 1)], `:scope > :nth-child(${n}) :is(.move, .remove)`);
  const append = () => change([...rows, rowOf(empty)], `:scope > :nth-child(${rows.length + 1}) :is(input, textarea, select)`);
  return html`
    <div class="rows" ref=${list}>
      ${rows.map(({ key, value }, n) => html`
        <fieldset key=${key} class="row panel">
          <legend>${label} ${n + 1}</legend>
          <div class="stack">
            ${children(`${name}[${n}]`, value)}
            <div class="actions left">
              ${isOrdered && n > 0 && html`<button type="button" class="button quiet small move" aria-label=${text.of(text.up, `${label} ${n + 1}`)} onClick=${() => up(n)}>${text.up}</button>`}
              <button type="button" class="button quiet small remove" aria-label=${text.of(text.remove, `${label} ${n + 1}`)} onClick=${() => remove(n)}>${text.remove}</button>
            </div>
          </div>
        </fieldset>`)}
      ${rows.length < most && html`<button key="add" type="button" class="button quiet small" onClick=${append}>${add}</button>`}
    </div>`;
}
