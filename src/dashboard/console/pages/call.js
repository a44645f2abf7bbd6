import { call, currency, mayWrite } from '../api.js';
import { html, useRef, useState } from '../html.js';
import { useEvery, useLive } from '../live.js';
import { Badge, Confirm, Heading, Loaded, useLoad } from '../parts.js';
import { go, to } from '../place.js';
import { words } from '../words.js';
import { Events, eventsOf, invocationsOf } from './call_events.js';
import { CallFacts, Given, Outcome } from './call_facts.js';
import { LiveTools } from './live_call.js';
import { whoOf } from './overview.js';
import { Recording, recordingOf } from './recording.js';
import { Timeline } from './timeline.js';
import { Transcript, showTurn, useTurns, waitsOf } from './transcript.js';

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
  return { session, agent, campaign, timeline: timeline.entries, answers: answers.data, recording: recordingOf(recordings.data), inMoney };
}

const valueOf = (value) => (typeof value === 'boolean' ? text.yesOrNo(value) : String(value));

const Answers = ({ answers }) => html`
  <section class="stack tight panel call-answers" aria-labelledby="answers"><h2 id="answers">${text.answers}</h2>
    <dl>${answers.map(({ id, question, value, source, evidence_turn: place }) => html`
      <div key=${id}>
        <dt class="wrap">${question}</dt>
        <dd><strong class="wrap">${valueOf(value)}</strong><span class="hint">${text.source(source)}</span>${place !== null && html`
          <button class="plain" aria-label=${text.evidenceOf(question)} onClick=${() => showTurn(place)}>${text.evidence}</button>`}</dd>
      </div>`)}</dl>
  </section>`;

/** The words beside their sound, which lead each other; and beside them what they came to. */
function Talk({ data: { session, agent, timeline, answers, recording }, invocations }) {
  const isLive = session.ended_at === null;
  const turns = useTurns(session.id, isLive);
  const player = useRef(null);
  const [current, setCurrent] = useState(null);
  // A recording may begin later than the talk: after its consent, or when it was known who had picked up.
  const offset = recording?.offset_seconds ?? 0;
  const follow = (seconds) => setCurrent((turns.data ?? []).findLastIndex(({ t }) => t <= seconds + offset));
  const seek = recording?.recording_url ? (t) => {
    player.current.currentTime = Math.max(t - offset, 0);
    player.current.play();
  } : null;
  const waits = waitsOf(timeline, session.started_at, turns.data ?? []);
  return html`
    <div class="call-talk">
      <div class="stack call-beside">
        ${isLive && mayWrite() && html`<${LiveTools} session=${session} agent=${agent} />`}
        ${recording && html`<${Recording} recording=${recording} player=${player} onTime=${follow} />`}
        ${answers.length > 0 && html`<${Answers} answers=${answers} />`}
      </div>
      <section class="stack tight call-words" aria-labelledby="words"><h2 id="words">${text.transcript}</h2>
        <${Loaded} of=${turns}>${(said) => html`
          <${Transcript} turns=${said} isLive=${isLive} current=${current} seek=${seek} waits=${waits} invocations=${invocations} />`}<//>
      </section>
    </div>`;
}

function Forget({ id }) {
  const [isAsked, setIsAsked] = useState(false);
  const forget = async () => {
    await call('DELETE', `/sessions/${id}`);
    go(to('calls'), { replace: true });
  };
  return html`
    <section class="stack tight" aria-labelledby="forget"><h2 id="forget">${text.forget}</h2>
      <p class="hint">${text.forgetText}</p>
      <div class="actions left"><button class="button quiet danger" onClick=${() => setIsAsked(true)}>${text.forget}</button></div>
      ${isAsked && html`<${Confirm} asks=${text.confirmForget} act=${forget} close=${() => setIsAsked(false)} />`}
    </section>`;
}

export function Call({ id }) {
  const loaded = useLoad(() => load(id), [id]);
  const events = useLoad(() => eventsOf(id), [id]);
  const reload = () => Promise.all([loaded.reload(), events.reload()]);
  useLive(({ data }) => data.session_id === id || data.id === id, reload, 1_000);
  // Much of what happens in a talk sends no event.
  useEvery(loaded.reload, 5_000, loaded.data?.session.ended_at === null);
  return html`
    <${Loaded} of=${loaded} isPage>${(data) => {
      const { session } = data;
      const isLive = session.ended_at === null;
      return html`
        <${Heading} title=${text.title(whoOf(session))}><${Badge} of=${session.status}>${isLive ? words.phase(session.phase) : words.status(session.status)}<//><//>
        <${CallFacts} ...${data} />
        <${Talk} data=${data} invocations=${invocationsOf(events.data?.data)} />
        <${Outcome} ...${data} reload=${reload} />
        <${Timeline} entries=${data.timeline} />
        <${Events} of=${events} />
        <${Given} session=${session} />
        ${!isLive && mayWrite() && html`<${Forget} id=${id} />`}`;
    }}<//>`;
}
