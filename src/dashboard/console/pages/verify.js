// Checks in the page whether a delivery was signed by an endpoint's secret, and says what is wrong. Nothing is sent anywhere.
import { call, query } from '../api.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { Area, Field, Form } from '../form.js';
import { Heading, useLoad } from '../parts.js';
import { words } from '../words.js';
import { diagnose } from './signature.js';

const text = words.webhooks.verify;
/** As many endpoints as a workspace has at most. */
const MOST = 100;
/** Characters of a body. */
const LONGEST = 1_000_000;
const KIND = { fine: 'good', wrong: 'bad', warning: '' };

/** The ends of the secrets that are in use here. Without them the check still works. */
const hintsOf = () => call('GET', `/webhook_endpoints${query({ limit: MOST })}`).then(({ data }) => data.map(({ secret_hint: hint }) => hint), () => []);

function Result({ checks }) {
  const heading = useRef(null);
  useEffect(() => heading.current.focus(), [checks]);
  const isRight = checks.every(({ verdict }) => verdict !== 'wrong');
  return html`
    <section class="stack tight" aria-labelledby="result">
      <h2 id="result" ref=${heading} tabindex="-1">${isRight ? text.verified : text.refused}</h2>
      <ul class="verdicts panel">${checks.map(({ part, verdict, message }) => html`
        <li key=${part}><span class="badge ${KIND[verdict]}">${text.verdicts[verdict]}</span> <strong>${text.parts[part]}</strong>
          <span>${message}</span></li>`)}</ul>
    </section>`;
}

export function Verify() {
  const { data: hints } = useLoad(hintsOf, []);
  const [checks, setChecks] = useState(null);
  if (!crypto.subtle) {
    return html`<${Heading} title=${text.title} /><p class="notice">${text.noCrypto}</p><p>${text.instead} <code>callboard webhook verify</code></p>`;
  }
  const check = async (values) => {
    const header = (name) => values.get(name).trim();
    setChecks(await diagnose({
      // Some browsers write the line breaks of a field anew.
      body: values.get('body').replaceAll('\r\n', '\n'), id: header('id'), timestamp: header('timestamp'), signature: header('signature'),
      secret: values.get('secret'), hints: hints ?? [], now: Math.floor(Date.now() / 1000),
    }));
  };
  const plain = { autocomplete: 'off', autocapitalize: 'off', spellcheck: false };
  const needed = (name) => html`
    <${Field} name=${name} label=${text.fields[name]} hint=${text.hints[name]} maxlength="1000" required data-message=${text.missing[name]} ...${plain} />`;
  return html`
    <${Heading} title=${text.title} />
    <p>${text.intro}</p>
    <${Form} act=${check} submit=${text.submit}>
      <${Area} name="body" label=${text.fields.body} hint=${text.hints.body} rows="5" maxlength=${LONGEST} ...${plain} />
      <${Field} name="id" label=${text.fields.id} hint=${text.hints.id} maxlength="200" ...${plain} />
      ${needed('timestamp')}
      ${needed('signature')}
      ${needed('secret')}
    <//>
    ${checks && html`<${Result} checks=${checks} />`}`;
}
