// From one day to another, of the person's own time zone. The address says which: `?from=2026-11-01&to=2026-11-30`.
import { html, useId } from './html.js';
import { place } from './place.js';
import { words } from './words.js';

/** The moment at which a day begins, some milliseconds before or days after; nothing, if the address names none. */
function beginning(day, { days = 0, ms = 0 } = {}) {
  const [, year, month, date] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(day ?? '') ?? [];
  return year && new Date(year, month - 1, Number(date) + days, 0, 0, 0, ms).toISOString();
}

/** For a list of the API: both days belong to it. */
export const between = () => ({
  created_after: beginning(place.value.query.get('from'), { ms: -1 }),
  created_before: beginning(place.value.query.get('to'), { days: 1 }),
});

function Day({ name, set }) {
  const id = useId();
  return html`
    <div class="field"><label for=${id}>${words.dates[name]}</label>
      <input id=${id} name=${name} type="date" value=${place.value.query.get(name) ?? ''} onChange=${({ target }) => set({ [name]: target.value })} />
    </div>`;
}

/** Two fields; `set` puts what changes into the address. */
export const Dates = ({ set }) => html`<${Day} name="from" set=${set} /><${Day} name="to" set=${set} />`;
