// What happened in a call, moment by moment.
import { html } from '../html.js';
import { count, time, timeOfDay } from '../format.js';
import { Time } from '../parts.js';
import { words } from '../words.js';

const text = words.call;

/** `endpoint 592 ms, packet 1302 ms` → `[['endpoint', 592], ['packet', 1302]]`. */
export const stagesOf = (detail) => [...detail.matchAll(/(\w+) (\d+) ms/g)].map(([, name, ms]) => [name, Number(ms)]);

function Latency({ detail }) {
  const stages = stagesOf(detail);
  const [, whole] = stages.find(([name]) => name === 'packet') ?? [];
  const before = stages.filter(([name]) => name !== 'packet');
  return html`
    ${whole !== undefined && html` ${text.after(count(whole))}`}
    ${before.length > 0 && html`<span class="hint">${before.map(([name, ms]) => text.stage(text.stages(name), count(ms))).join(', ')}</span>`}`;
}

const Ladder = ({ detail }) => {
  const steps = detail.split(', ');
  return html`
    <details><summary>${text.ladder(steps.length)}</summary>
      <ol class="ladder">${steps.map((step, n) => html`<li key=${n}><code>${step}</code></li>`)}</ol>
    </details>`;
};

const DETAILS = {
  turn_latency: Latency,
  sip_ladder: Ladder,
  ended: ({ detail }) => ` ${text.reason(detail)}`,
  answered: ({ detail }) => ` ${words.plain(detail)}`,
};
const Plain = ({ detail }) => html` <span class="wrap">${detail}</span>`;

function Entry({ entry: { at, kind, detail } }) {
  const Detail = DETAILS[kind] ?? Plain;
  // Not what happened then, but when it was to be called.
  const when = kind === 'scheduled_for' ? time : timeOfDay;
  return html`<li><${Time} of=${at} format=${when} /><span><strong>${text.kind(kind)}</strong>${detail && html`<${Detail} detail=${detail} />`}</span></li>`;
}

export const Timeline = ({ entries }) => html`
  <section class="stack tight" aria-labelledby="timeline"><h2 id="timeline">${text.timeline}</h2>
    <ol class="timeline scrolls" tabindex="0" aria-labelledby="timeline">${entries.map((entry, n) => html`<${Entry} key=${n} entry=${entry} />`)}</ol>
  </section>`;
