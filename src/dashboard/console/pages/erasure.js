// Erasing a person: a job of the server, which this page follows, and its report.
import { call, query } from '../api.js';
import { Check, FormDialog } from '../form.js';
import { count } from '../format.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { useAct } from '../parts.js';
import { words } from '../words.js';

const text = words.compliance.person;
/** What is counted, in this order. */
export const ERASED = ['sms', 'emails', 'contacts', 'sessions', 'attempts', 'consents'];
const POLL_MS = 1_000;

const isOpen = ({ status }) => ['queued', 'running'].includes(status);

/** `3 calls, 1 SMS`: as many as there are of each kind. */
const amountsOf = (amounts) => ERASED.filter((kind) => amounts[kind]).map((kind) => text.amount[kind](amounts[kind], count(amounts[kind]))).join(', ');

function AskToErase({ who, whom, amounts, isListed, close, begin }) {
  const act = async (values) => {
    // First: nobody is called while it lasts, nor by what cannot be erased.
    if (values.has('dnc')) await call('POST', '/dnc', whom.email ? { email: whom.email } : { phone_number: whom.number });
    begin(await call('DELETE', `/people${query({ phone_number: whom.number, email: whom.email })}`));
  };
  return html`
    <${FormDialog} title=${text.confirm.title(who)} act=${act} submit=${text.confirm.yes} close=${close} isDanger>
      <p>${text.confirm.text(amountsOf(amounts))}</p>
      ${!isListed && html`<${Check} name="dnc" label=${text.confirm.dnc} hint=${text.confirm.dncHint} defaultChecked />`}
    <//>`;
}

function Outcome({ erasure }) {
  const heading = useRef(null);
  useEffect(() => heading.current.focus(), []);
  const amounts = amountsOf(erasure.erased);
  const kept = ({ what, count: many, rules }) => html`
    <li key=${what}>${text.keptOf(what)}${many ? ` (${count(many)})` : ''}${rules.length > 0 && html` <span class="hint wrap">${text.keptBy(rules.join(', '))}</span>`}</li>`;
  return html`
    <section class="stack tight panel tools outcome" aria-labelledby="outcome">
      <h3 id="outcome" ref=${heading} tabindex="-1">${text.done}</h3>
      <p>${text.erased(amounts)} ${erasure.kept.some(({ what }) => what === 'do_not_call') && text.listed}</p>
      ${erasure.error && html`<p class="error block" role="alert">${erasure.error}</p>`}
      <h4>${text.stays}</h4>
      <ul class="bullets">${erasure.kept.map(kept)}</ul>
      <p class="hint">${text.report(erasure.id)}</p>
    </section>`;
}

/** Until it has ended; whoever has left the page sees no end of it, and it ends all the same. */
async function follow(begun, told, isOver) {
  let now = begun;
  while (isOpen(now) && !isOver()) {
    told(now);
    await new Promise((done) => { setTimeout(done, POLL_MS); });
    now = await call('GET', `/people/erasures/${begun.id}`);
  }
  return isOver() ? null : now;
}

export function Erase({ who, whom, amounts, isListed, isEmpty, reload }) {
  const [isAsked, setIsAsked] = useState(false);
  const [now, setNow] = useState(null);
  const [run, busy, error] = useAct();
  const isOver = useRef(false);
  useEffect(() => () => { isOver.current = true; }, []);
  const begin = (begun) => run(async () => {
    const ended = await follow(begun, setNow, () => isOver.current);
    if (!ended) return;
    setNow(ended);
    await reload();
  });
  const isThere = ERASED.some((kind) => amounts[kind]);
  const soFar = now && isOpen(now) && amountsOf(now.erased);
  return html`
    ${busy && now && html`
      <div class="whole" role="status"><span>${text.progress(soFar)}</span>${now.waits_for && html` <span>${text.waits(now.waits_for)}</span>`}</div>`}
    ${error && html`<p class="error block" role="alert">${error.message}</p>`}
    ${!busy && isThere && html`
      <div class="actions left"><button class="button danger" onClick=${() => setIsAsked(true)}>${text.erase}</button></div>`}
    ${!isThere && !isEmpty && !now && html`<p class="muted">${text.noneToErase}</p>`}
    ${now && !isOpen(now) && html`<${Outcome} erasure=${now} />`}
    ${isAsked && html`<${AskToErase} ...${{ who, whom, amounts, isListed, begin }} close=${() => setIsAsked(false)} />`}`;
}
