// How a SIP trunk stands, in words.
import { decimal, time } from '../format.js';
import { html } from '../html.js';
import { Badge, Table } from '../parts.js';
import { words } from '../words.js';

const text = words.trunks;

/** What codes of SIP mean to whoever runs the trunk. Source: docs/telephony.md, "When it does not work". */
const MEANINGS = {
  login: [401, 407],
  account: [402],
  forbidden: [403],
  number: [404, 410, 484, 485, 604],
  nobody: [408, 480, 487],
  codecs: [415, 488, 606],
  interval: [423],
  full: [429, 503],
  signature: [428, 433, 436, 437, 438],
  loop: [482, 483],
  busy: [486, 600],
  trouble: [500, 502, 504],
  declined: [603, 607],
  spam: [608],
  misunderstood: [400, 405, 406, 413, 414, 416, 420, 481, 493, 501, 505, 513, 580],
};

/** The peer names a limit of its own, whatever the code. */
const isLimit = (code, reason) => [403, 500].includes(code) && /channel|cps|limit/i.test(reason);

export function meaningOf(code, reason = '') {
  if (isLimit(code, reason)) return text.means.full;
  if (code >= 300 && code < 400) return text.means.elsewhere;
  const [name] = Object.entries(MEANINGS).find(([, codes]) => codes.includes(code)) ?? ['other'];
  return text.means[name];
}

/** Refused as a whole, and not for one call. */
const refusalOf = ({ sip_code: code, reason }) => (code === 403 ? text.means.stranger : meaningOf(code, reason));

/** The shortest word for it, the worst first: `[kind of badge, word]`. */
function standing({ paused, register, state: { up, refused, paused_until: resting, registered_until: registered } }) {
  if (refused) return ['failed', text.stands.refused];
  if (paused) return ['paused', text.stands.paused];
  if (up === false) return ['down', register.enabled && !registered ? text.stands.unregistered : text.stands.down];
  if (resting) return ['paused', text.stands.resting];
  return up ? ['active', text.stands.up] : ['', text.stands.unknown];
}

export const Stands = ({ trunk }) => {
  const [kind, word] = standing(trunk);
  return html`<${Badge} of=${kind}>${word}<//>`;
};

/** The peer's own words. */
export const answerOf = ({ sip_code: code, reason }) => `${code} ${reason}`.trim();

/** All that is to be said of it: `[is it in trouble?, sentence]`. */
export function linesOf(trunk) {
  const { paused, register, state, max_calls_per_second: wanted } = trunk;
  const { up, refused, paused_until: resting, registered_until: registered, calls_per_second: rate } = state;
  return [
    refused && [true, text.lines.refused(answerOf(refused), refusalOf(refused))],
    up === false && !refused && [true, register.enabled && !registered ? text.lines.unregistered : text.lines.down],
    paused && [false, text.lines.paused],
    resting && [false, text.lines.resting(time(resting))],
    registered && [false, text.lines.registered(time(registered))],
    up === null && [false, text.lines.unknown],
    rate < wanted && [false, text.lines.slow(decimal(rate), decimal(wanted))],
  ].filter(Boolean);
}

/** Where its host leads to. */
export const Targets = ({ of }) => html`
  <section class="stack tight" aria-labelledby="targets">
    <h2 id="targets">${text.targets.title}</h2>
    ${of.length ? html`
      <${Table} label=${text.targets.title} columns=${Object.values(text.targets.columns)} rows=${of.map(({ address, transport, up }) => ({
        key: `${address} ${transport}`,
        cells: [html`<code>${address}</code>`, text.options.transport[transport], html`<${Badge} of=${up ? 'active' : 'down'}>${up ? text.stands.up : text.targets.rests}<//>`],
      }))} />` : html`<p class="muted">${text.targets.none}</p>`}
  </section>`;
