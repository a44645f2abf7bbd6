import { apiUrl, call, currency, mayWrite } from '../api.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { duration, money, timeOfDay } from '../format.js';
import { useLive, whileSeen } from '../live.js';
import { Badge, Confirm, Facts, Heading, Loaded, Time, useAct, useLoad } from '../parts.js';
import { to } from '../place.js';
import { words } from '../words.js';
import { directionOf } from './calls.js';
import { whoOf } from './overview.js';

const text = words.call;

async function load(id) {
  const session = await call('GET', `/sessions/${id}`);
  const [agent, campaign, timeline, answers, recordings, inMoney] = await Promise.all([
    // Either may have been deleted since.
    call('GET', `/agents/${session.agent_id}`).catch(() => null),
    session.campaign_id && call('GET', `/campaigns/${session.campaign_id}`).catch(() => null),
    call('GET', `/sessions/${id}/timeline`),
    call('GET', `/sessions/${id}/answers`),
    call('GET', `/sessions/${id}/recordings`),
    currency(),
  ]);
  return { session, agent, campaign, timeline: timeline.entries, answers: answers.data, recordings: recordings.data, inMoney };
}

/**
 * What was said so far. While it lasts by the call's own stream: each turn as it begins, and again when its words are known. Afterwards,
 * and where there is no stream, as it was stored.
 */
function useTurns(id, isLive) {
  const [turns, setTurns] = useState(null);
  const [error, setError] = useState(null);
  const [again, setAgain] = useState(0);
  useEffect(() => {
    if (isLive === null) return undefined;
    let source = null;
    const stored = async () => {
      try {
        const { turns: all } = await call('GET', `/sessions/${id}/transcript.json`);
        setTurns(new Map(all.entries()));
        setError(null);
      } catch (failed) {
        setError(failed);
      }
    };
    if (!isLive) {
      stored();
      return undefined;
    }
    const take = (place, turn) => setTurns((before) => new Map(before).set(place, { ...before?.get(place), ...turn }));
    const open = () => {
      source?.close();
      setTurns((before) => before ?? new Map());
      source = new EventSource(apiUrl(`/sessions/${id}/stream`));
      source.addEventListener('turn', ({ data, lastEventId }) => take(Number(lastEventId), JSON.parse(data)));
      source.addEventListener('words', ({ data }) => {
        const { place, content } = JSON.parse(data);
        take(place, { content });
      });
      source.addEventListener('end', () => source.close());
      source.onopen = () => setError(null);
      source.onerror = () => { if (source.readyState === EventSource.CLOSED) setError(new Error(text.noStream)); };
    };
    return whileSeen(open, () => source?.close());
  }, [id, isLive, again]);
  const data = turns && [...turns].sort(([one], [two]) => one - two).map(([, turn]) => turn);
  return { data, error, reload: () => setAgain((count) => count + 1) };
}

function Transcript({ turns, isLive, at, seek }) {
  if (!turns.length) return html`<p class="muted">${isLive ? text.notYet : text.silent}</p>`;
  // The last that had begun.
  const current = at === null ? -1 : turns.findLastIndex(({ t }) => t <= at);
  return html`
    <ol class="turns" aria-live=${isLive ? 'polite' : 'off'}>
      ${turns.map(({ role, content, t, tool_calls: calls = [] }, n) => html`
        <li class="turn ${role}" key=${n} aria-current=${n === current ? 'true' : undefined}>
          <span class="speaker">${text.speaker(role)} ${seek
            ? html`<button class="plain" onClick=${() => seek(t)}>${duration(t)}</button>` : duration(t)}</span>
          <p>${content}${calls.map((made) => html`<span class="hint" key=${made.id}>${text.calls(made.name)} <code>${JSON.stringify(made.arguments)}</code></span>`)}</p>
        </li>`)}
    </ol>`;
}

function Tools({ id }) {
  const [run, busy, error] = useAct();
  const [done, setDone] = useState('');
  const [asks, setAsks] = useState(false);
  const submit = (verb, field, said) => (event) => {
    event.preventDefault();
    const form = event.target;
    setDone('');
    run(async () => {
      await call('POST', `/sessions/${id}/${verb}`, { [field]: new FormData(form).get(field).trim() });
      form.reset();
      setDone(said);
    });
  };
  return html`
    <section class="stack tight panel tools" aria-labelledby="tools">
      <h2 id="tools">${text.liveTools}</h2>
      <form class="with-button" onSubmit=${submit('say', 'text', text.say.done)}>
        <input name="text" required maxlength="1000" aria-label=${text.say.label} placeholder=${text.say.label} />
        <button class="button quiet" disabled=${busy}>${text.say.button}</button>
      </form>
      <form class="with-button" onSubmit=${submit('transfer', 'transfer_number', text.transfer.done)}>
        <input name="transfer_number" type="tel" required maxlength="50" aria-label=${text.transfer.label} placeholder="${text.transfer.label}: ${text.transfer.hint}" />
        <button class="button quiet" disabled=${busy}>${text.transfer.button}</button>
      </form>
      ${error && html`<p class="error block" role="alert">${error.message}</p>`}
      <p class="hint" role="status">${done}</p>
      <div class="actions left"><button class="button danger" onClick=${() => setAsks(true)}>${text.end}</button></div>
      ${asks && html`<${Confirm} asks=${text.confirmEnd} act=${() => call('POST', `/sessions/${id}/end`, undefined)} close=${() => setAsks(false)} />`}
    </section>`;
}

const Timeline = ({ entries }) => html`
  <ol class="timeline">${entries.map(({ at, kind, detail }, n) => html`
    <li key=${n}><${Time} of=${at} format=${timeOfDay} /><span><strong>${words.plain(kind)}</strong>${detail && html` <span class="wrap">${detail}</span>`}</span></li>`)}</ol>`;

const Answers = ({ answers }) => html`
  <section class="stack tight"><h2>${text.answers}</h2>
    <${Facts} of=${answers.map(({ question, value }) => [question, typeof value === 'boolean' ? text.yesOrNo(value) : String(value)])} />
  </section>`;

export function Call({ id }) {
  const loaded = useLoad(() => load(id), [id]);
  const turns = useTurns(id, loaded.data && loaded.data.session.ended_at === null);
  const player = useRef(null);
  const [at, setAt] = useState(null);
  useLive(({ data }) => data.session_id === id || data.id === id, loaded.reload, 1_000);
  const seek = (seconds) => { if (player.current) { player.current.currentTime = seconds; player.current.play(); } };
  return html`
    <${Loaded} of=${loaded}>${({ session, agent, campaign, timeline, answers, recordings, inMoney }) => {
      const isLive = session.ended_at === null;
      const heard = recordings.find(({ status }) => status === 'completed');
      const { latency, error } = session;
      return html`
        <${Heading} title=${text.title(whoOf(session))}><${Badge} of=${session.status}>${isLive ? words.phase(session.phase) : words.status(session.status)}<//><//>
        <${Facts} of=${[
          [text.facts.direction, directionOf(session)], [text.facts.from, session.from_number], [text.facts.to, session.to_number],
          [text.facts.agent, `${agent?.name ?? session.agent_id}, ${text.version(session.agent_version)}`],
          [text.facts.campaign, campaign && html`<a href=${to('campaigns', campaign.id)}>${campaign.name}</a>`],
          [text.facts.started, session.started_at && html`<${Time} of=${session.started_at} />`],
          [text.facts.length, isLive ? null : duration(session.duration_seconds)],
          [text.facts.cost, money(session.actual_cost_cents, inMoney)],
          [text.facts.answeredBy, session.answered_by && words.plain(session.answered_by)],
          [text.facts.ended, session.end_reason && text.endedBy(session.end_reason, session.ended_by)],
          [text.facts.consent, words.plain(session.consent)], [text.facts.disposition, session.disposition_code],
          [text.facts.latency, latency && text.latency(latency.p50_ms, latency.p95_ms)], [text.facts.reference, session.client_reference_id],
          [text.facts.error, error && `${error.message}${error.sip_code ? ` (SIP ${error.sip_code})` : ''}`],
        ]} />
        ${isLive && mayWrite() && html`<${Tools} id=${id} />`}
        <div class="columns">
          <section class="stack tight" aria-labelledby="words"><h2 id="words">${text.transcript}</h2>
            ${heard && html`<audio ref=${player} controls preload="none" aria-label=${text.recording} src=${apiUrl(`/recordings/${heard.id}/audio`)} onTimeUpdate=${({ target }) => setAt(target.currentTime)}></audio>`}
            <${Loaded} of=${turns}>${(said) => html`<${Transcript} turns=${said} isLive=${isLive} at=${at} seek=${heard && seek} />`}<//>
          </section>
          <section class="stack tight"><h2>${text.timeline}</h2><${Timeline} entries=${timeline} /></section>
        </div>
        ${answers.length > 0 && html`<${Answers} answers=${answers} />`}`;
    }}<//>`;
}
