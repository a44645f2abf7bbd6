// A talk with an agent in writing: what the other side says and what functions answer is typed, what the agent says is read.
import { call } from '../api.js';
import { Area, Field, Form } from '../form.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { Facts } from '../parts.js';
import { jsonOf, linesOf, textOf } from '../values.js';
import { words } from '../words.js';
import { definitionOf, variablesOf } from './definition.js';
import { Turns } from './turns.js';

const text = words.agents.dry;

/** A field for each variable that the agent's words have. */
export const Variables = ({ of }) => of.length > 0 && html`
  <fieldset class="stack"><legend>${text.variables}</legend>
    <div class="pair">${of.map((name) => html`<${Field} key=${name} name="variables.${name}" label=${name} maxlength="2000" />`)}</div>
  </fieldset>`;

/** Those that were given. */
export const variablesFrom = (values, names) => Object.fromEntries(
  names.map((name) => [name, textOf(values, `variables.${name}`)]).filter(([, value]) => value),
);

function Result({ result, questions }) {
  const heading = useRef(null);
  useEffect(() => heading.current.focus(), [result]);
  const { turns, timeline, function_invocations: invoked, end_reason: ended, error, disposition_code: code, disposition_note: note, answers } = result;
  const questionOf = (key) => questions.find((question) => question.key === key)?.text ?? key;
  const shown = (value) => (typeof value === 'boolean' ? words.call.yesOrNo(value) : String(value));
  return html`
    <section class="stack" aria-labelledby="result">
      <h2 id="result" ref=${heading} tabindex="-1">${text.result}</h2>
      ${error && html`<p class="error block">${error}</p>`}
      ${turns.length ? html`<${Turns} turns=${turns} />` : html`<p class="muted">${text.silent}</p>`}
      <${Facts} of=${[
        [text.facts.ended, ended ? words.plain(ended) : text.open], [text.facts.disposition, code], [text.facts.note, note],
        [text.facts.invocations, invoked.map((one) => text.invoked(one.name, words.plain(one.status), one.duration_ms)).join('; ')],
      ]} />
      ${Object.keys(answers).length > 0 && html`
        <h3>${words.call.answers}</h3>
        <${Facts} of=${Object.entries(answers).map(([key, value]) => [questionOf(key), shown(value)])} />`}
      ${timeline.length > 0 && html`
        <details><summary>${text.timeline}</summary>
          <ol class="timeline plain">${timeline.map(({ kind, detail }, n) => html`<li key=${n}><strong>${words.plain(kind)}</strong><span class="wrap">${detail?.replaceAll('`', '')}</span></li>`)}</ol>
        </details>`}
    </section>`;
}

export function DryRun({ all: { agent, functions } }) {
  const [result, setResult] = useState(null);
  const names = variablesOf(definitionOf(agent));
  const its = functions.filter(({ id }) => agent.function_ids.includes(id));
  const run = async (values) => {
    const stubs = its.map(({ name }) => [name, jsonOf(values, `functions.${name}`, undefined)]).filter(([, answer]) => answer !== undefined);
    setResult(await call('POST', `/agents/${agent.id}/simulate`, {
      turns: linesOf(values, 'turns'), variables: variablesFrom(values, names), functions: Object.fromEntries(stubs),
    }));
  };
  return html`
    <p>${text.about}</p>
    <${Form} act=${run} submit=${text.run}>
      <${Area} name="turns" label=${text.turns} hint=${text.turnsHint} rows="5" required />
      <${Variables} of=${names} />
      ${its.length > 0 && html`
        <fieldset class="stack"><legend>${text.stubs}</legend><p class="hint">${text.stubsHint}</p>
          ${its.map(({ id, name }) => html`<${Area} key=${id} name="functions.${name}" label=${name} rows="2" class="mono" spellcheck=${false} placeholder='{ "ok": true }' />`)}
        </fieldset>`}
    <//>
    ${result && html`<${Result} result=${result} questions=${agent.questions} />`}`;
}
