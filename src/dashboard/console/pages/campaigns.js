import { call, mayWrite, query } from '../api.js';
import { html } from '../html.js';
import { count } from '../format.js';
import { useLive } from '../live.js';
import { Badge, Choice, Heading, Loaded, More, Progress, Table, Time, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { words } from '../words.js';
import { doneOf } from './overview.js';

const text = words.campaigns;
const STATUSES = ['draft', 'running', 'paused', 'completed'];

export function Campaigns() {
  const status = place.value.query.get('status') ?? '';
  const pages = usePages((cursor) => call('GET', `/campaigns${query({ status, cursor, limit: 50 })}`), [status]);
  useLive(({ type }) => type.startsWith('campaign.'), pages.reload);
  const row = ({ id, name, status: its, counts, created_at: created }) => {
    const label = text.progress(count(doneOf(counts)), count(counts.total));
    return {
      key: id,
      cells: [
        html`<a href=${to('campaigns', id)}>${name}</a>`, html`<${Badge} of=${its} />`,
        html`<${Progress} done=${doneOf(counts)} total=${counts.total} label=${label} /> ${label}`, html`<${Time} of=${created} />`,
      ],
    };
  };
  return html`
    <${Heading} title=${text.title} />
    ${mayWrite() && html`<div class="actions left"><a class="button" href=${to('campaigns', 'new')}>${text.create}</a></div>`}
    <div class="filters">
      <${Choice} id="status" label=${text.filter} value=${status} options=${[['', text.any], ...STATUSES.map((name) => [name, words.status(name)])]}
        onChange=${(value) => go(to('campaigns', '', { status: value }))} />
    </div>
    <${Loaded} of=${pages}>${(campaigns) => campaigns.length
      ? html`<${Table} label=${text.title} columns=${Object.values(text.columns)} rows=${campaigns.map(row)} /><${More} next=${pages.next} />`
      : html`<p class="empty panel">${status ? text.none : text.empty}</p>`}<//>`;
}
