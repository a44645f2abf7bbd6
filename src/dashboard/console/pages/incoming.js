// A call to one of the workspace's numbers, played by the sandbox.
import { call } from '../api.js';
import { Area, Field, Form, Select } from '../form.js';
import { html, useState } from '../html.js';
import { to } from '../place.js';
import { words } from '../words.js';
import { written } from './lines.js';

const text = words.numbers.incoming;
const OUTCOMES = ['talk', 'opt_out', 'consent_refused', 'transfer', 'function_timeout', 'abandoned'];
/** Steps of a script. */
const MOST_LINES = 100;

const Taken = ({ of: { outcome, session, instead, message } }) => html`
  <p class="notice">${text.became(outcome)}
    ${session && html` <a href=${to('calls', session.id)}>${text.toCall}</a>`}
    ${instead && ` ${text.instead(instead)}`}${message && html` <q class="wrap">${message}</q>`}</p>`;

export function Incoming({ number }) {
  const [taken, setTaken] = useState(null);
  const act = async (values) => {
    setTaken(null);
    const lines = values.get('script').split('\n').map((line) => line.trim()).filter(Boolean).slice(0, MOST_LINES);
    const script = lines.map((say) => ({ say }));
    setTaken(await call('POST', '/_sandbox/inbound_calls', {
      to_number: number, from_number: written(values, 'from_number'), outcome: values.get('outcome'), script,
    }));
  };
  return html`
    <section class="stack tight" aria-labelledby="incoming">
      <h2 id="incoming">${text.title}</h2>
      <p>${text.text}</p>
      <${Form} act=${act} submit=${text.submit}>
        <div class="fields">
          <${Field} name="from_number" label=${text.from} hint=${text.fromHint} type="tel" maxlength="20" autocomplete="off" />
          <${Select} name="outcome" label=${text.outcome} options=${OUTCOMES.map((name) => [name, text.outcomes(name)])} defaultValue="talk" />
          <${Area} name="script" label=${text.script} hint=${text.scriptHint} rows="3" />
        </div>
      <//>
      <div role="status">${taken && html`<${Taken} of=${taken} />`}</div>
    </section>`;
}
