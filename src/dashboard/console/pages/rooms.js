import { call, mayWrite, query } from '../api.js';
import { Secret } from '../form.js';
import { html, useState } from '../html.js';
import { duration, nameOf } from '../format.js';
import { useLive } from '../live.js';
import { Badge, Choice, Confirm, Facts, Heading, Loaded, More, Table, Time, useLoad, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { words } from '../words.js';
import { NewRoom, loadParts } from './new_room.js';
import { PairFacts } from './pairs.js';
import { Timeline } from './timeline.js';
import { Transcript, useTurns, waitsOf } from './transcript.js';

const text = words.rooms;
const STATUSES = ['created', 'viewed', 'joined', 'completed', 'expired', 'failed'];
const SHADES = { joined: 'running', expired: 'skipped' };

const Status = ({ of }) => html`<${Badge} of=${SHADES[of] ?? of}>${words.status(of)}<//>`;
const whoOf = ({ participant }) => nameOf(participant) || participant.email;
const isOpen = ({ ended_at: ended }) => ended === null;

export function Rooms() {
  const status = place.value.query.get('status') ?? '';
  const pages = usePages((cursor) => call('GET', `/rooms${query({ status, cursor, limit: 50 })}`), [status]);
  const parts = useLoad(loadParts, []);
  const [isMaking, setMaking] = useState(false);
  useLive(({ type }) => type.startsWith('room.'), pages.reload);
  const row = (room) => {
    const { id, status: its, agent_id: agent, created_at: created, expires_at: expires } = room;
    return {
      key: id,
      cells: [
        html`<a href=${to('rooms', id)}>${whoOf(room) || text.nobody}</a>`,
        html`<span class="wrap">${parts.data?.agents.find((one) => one.id === agent)?.name ?? words.none}</span>`,
        html`<${Status} of=${its} />`, html`<${Time} of=${created} />`, isOpen(room) && its !== 'joined' ? html`<${Time} of=${expires} />` : words.none,
        room.joined_at && !isOpen(room) ? duration(room.duration_seconds) : words.none,
      ],
    };
  };
  return html`
    <${Heading} title=${text.title} />
    ${mayWrite() && html`
      <div class="actions left"><button class="button" disabled=${!parts.data && !parts.error} onClick=${() => setMaking(true)}>${text.create}</button></div>`}
    ${isMaking && html`<${NewRoom} parts=${parts} close=${() => setMaking(false)} />`}
    <div class="filters">
      <${Choice} id="status" label=${text.filter} value=${status} options=${[['', text.any], ...STATUSES.map((name) => [name, words.status(name)])]}
        onChange=${(value) => go(to('rooms', '', { status: value }), { replace: true })} />
    </div>
    <${Loaded} of=${pages}>${(rooms) => rooms.length
      ? html`<${Table} label=${text.title} columns=${Object.values(text.columns)} rows=${rooms.map(row)} /><${More} next=${pages.next} />`
      : html`<p class="empty panel">${status ? text.none : text.empty}</p>`}<//>`;
}

/** All but the room itself may have been deleted since. */
async function load(id) {
  const room = await call('GET', `/rooms/${id}`);
  const [session, timeline, agent, voice] = await Promise.all([
    call('GET', `/sessions/${room.session_id}`).catch(() => null),
    call('GET', `/sessions/${room.session_id}/timeline`).catch(() => null),
    call('GET', `/agents/${room.agent_id}`).catch(() => null),
    room.voice_id && call('GET', `/voices/${encodeURIComponent(room.voice_id)}`).catch(() => null),
  ]);
  return { room, session, timeline: timeline?.entries ?? [], agent, voice };
}

function Actions({ room, reload }) {
  const [asks, setAsks] = useState('');
  const close = () => setAsks('');
  const end = async () => {
    await call('POST', `/rooms/${room.id}/end`, undefined);
    await reload();
  };
  const remove = async () => {
    await call('DELETE', `/rooms/${room.id}`);
    go(to('rooms'));
  };
  const { confirmEnd } = text;
  return html`
    <div class="actions left">
      ${isOpen(room)
        ? html`<button class="button quiet danger" onClick=${() => setAsks('end')}>${text.end}</button>`
        : html`<button class="button quiet danger" onClick=${() => setAsks('remove')}>${text.remove}</button>`}
    </div>
    ${asks === 'end' && html`<${Confirm} asks=${{ ...confirmEnd, text: room.status === 'joined' ? confirmEnd.live : confirmEnd.text }} act=${end} close=${close} />`}
    ${asks === 'remove' && html`<${Confirm} asks=${text.confirmRemove} act=${remove} close=${close} />`}`;
}

const State = ({ room: { status, error } }) => (status === 'failed'
  ? html`
    <div class="error block" role="alert"><p>${text.state(status)} ${error && text.fault(error.code)}</p>
      ${error?.message && html`<p class="wrap">${error.message.replaceAll('`', '')}</p>`}
    </div>`
  : html`<p class="notice" role="status">${text.state(status)}</p>`);

const Link = ({ url }) => html`
  <section class="stack tight" aria-labelledby="link"><h2 id="link">${text.link}</h2>
    <p>${text.linkHint}</p>
    <${Secret} value=${url} label=${text.link} />
    <p><a class="button quiet" href=${url} target="_blank" rel="noopener noreferrer">${text.open}</a></p>
  </section>`;

/** What is said, as it comes; all else about the talk is on the page of its call. */
function Talk({ session, timeline }) {
  const isLive = session.ended_at === null;
  const turns = useTurns(session.id, isLive);
  return html`
    <section class="stack tight" aria-labelledby="words"><h2 id="words">${words.call.transcript}</h2>
      <${Loaded} of=${turns}>${(said) => html`
        <${Transcript} turns=${said} isLive=${isLive} current=${null} seek=${null} waits=${waitsOf(timeline, session.started_at, said)} invocations=${[]} />`}<//>
    </section>`;
}

export function Room({ id }) {
  const loaded = useLoad(() => load(id), [id]);
  useLive(({ data }) => data.room_id === id || data.session_id === loaded.data?.room.session_id, loaded.reload, 1_000);
  return html`
    <${Loaded} of=${loaded} isPage>${({ room, session, timeline, agent, voice }) => html`
      <${Heading} title=${whoOf(room) ? text.one(whoOf(room)) : text.nameless}><${Status} of=${room.status} /><//>
      <${State} room=${room} />
      ${mayWrite() && html`<${Actions} room=${room} reload=${loaded.reload} />`}
      ${isOpen(room) && mayWrite() && html`<${Link} url=${room.room_url} />`}
      <${Facts} of=${[
        [text.facts.agent, agent
          ? html`<a href=${to('agents', agent.id)}>${text.version(agent.name, room.agent_version)}</a>` : text.version(room.agent_id, room.agent_version)],
        [text.facts.voice, voice?.name ?? room.voice_id], [text.facts.email, room.participant.email],
        [text.facts.created, html`<${Time} of=${room.created_at} />`], [text.facts.expires, room.joined_at ? null : html`<${Time} of=${room.expires_at} />`],
        [text.facts.viewed, room.viewed_at && html`<${Time} of=${room.viewed_at} />`], [text.facts.joined, room.joined_at && html`<${Time} of=${room.joined_at} />`],
        [text.facts.ended, room.ended_at && html`<${Time} of=${room.ended_at} />`],
        [text.facts.length, room.joined_at && room.ended_at ? duration(room.duration_seconds) : null],
        [text.facts.longest, duration(room.max_duration_seconds)], [text.facts.reference, room.client_reference_id],
      ]} />
      ${session && html`<p>${text.callText} <a href=${to('calls', room.session_id)}>${isOpen(room) ? text.callLive : text.callDone}</a></p>
        <div class="columns">
          ${room.joined_at && html`<${Talk} session=${session} timeline=${timeline} />`}
          <${Timeline} entries=${timeline} />
        </div>`}
      <${PairFacts} title=${text.variables} of=${room.variables} />
      <${PairFacts} title=${text.metadata} of=${room.metadata} />`}<//>`;
}
