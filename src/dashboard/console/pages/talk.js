// A talk with an agent in the page: a room made for it, joined by the scripts of the room's own page.
import { Line } from '../../room/room-line.js';
import { Meter, ask } from '../../room/room-sound.js';
import { apiUrl, call } from '../api.js';
import { Form } from '../form.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { timeOfDay } from '../format.js';
import { useLive } from '../live.js';
import { Facts, Loaded, Time, useLoad } from '../parts.js';
import { place, to } from '../place.js';
import { words } from '../words.js';
import { definitionOf, variablesOf } from './definition.js';
import { Variables, variablesFrom } from './dry_run.js';
import { stagesOf } from './timeline.js';
import { Turns } from './turns.js';

const text = words.agents.talk;
/** It is joined at once. */
const EXPIRES_SECONDS = 60;
/** What the service writes where nobody puts speech into words. */
const WORDLESS = '[speech]';
/** Turns and measured answers that are shown. */
const MOST = 200;
/** An answer is measured a moment after its words are shown. */
const MEASURED_MS = 1_000;

const letGo = (stream) => stream?.getTracks().forEach((track) => {
  track.onended = null;
  track.stop();
});

/** Makes addresses below the room's link, on the origin of this page: the link begins with what the operator calls it. */
function addressesOf({ room_url: link }) {
  const { pathname, search } = new URL(link);
  return (below, more = {}) => {
    const url = new URL(pathname + below + search, location.origin);
    for (const [name, value] of Object.entries(more)) url.searchParams.set(name, value);
    return url;
  };
}

/** The relays for networks without UDP. Only the room's page tells them, with logins that are good for a few hours. */
async function relaysOf(address) {
  const answer = await fetch(address(''));
  const { body } = new DOMParser().parseFromString(await answer.text(), 'text/html');
  return JSON.parse(body.dataset.iceServers ?? '[]');
}

/** What this browser lacks, if anything. */
function lack() {
  if (!window.RTCPeerConnection) return 'old_browser';
  return navigator.mediaDevices?.getUserMedia ? null : 'insecure';
}

/** One talk, from the press on the button to its end. `tell` takes what changes of its state; after the end it is told nothing more. */
class Talk {
  #tell;
  #room = null;
  #microphone = null;
  #line = null;
  #turns = new Map();
  #isJoined = false;
  #isOver = false;
  /** The rooms of the environment that the talk has begun in, wherever the person goes. */
  #rooms = apiUrl('/rooms');

  constructor(tell) {
    this.#tell = tell;
  }

  async start(asked) {
    try {
      this.#change({ stage: 'asking' });
      const missing = lack();
      if (missing) return this.#end({ failed: missing });
      const microphone = await ask();
      if (this.#isOver) return letGo(microphone);
      this.#microphone = microphone;
      microphone.getAudioTracks()[0].onended = () => this.#change({ trouble: text.unplugged });
      this.#change({ stage: 'connecting', microphone });
      this.#room = await call('POST', '/rooms', asked);
      if (this.#isOver) return this.#leaveRoom();
      this.#change({ session: this.#room.session_id });
      const address = addressesOf(this.#room);
      const iceServers = await relaysOf(address);
      if (this.#isOver) return this.#leaveRoom();
      return this.#join(address, iceServers);
    } catch (error) {
      // The API has codes of its own, and says in words what is wrong.
      return this.#end(error.status === undefined && error.code in text.failed ? { failed: error.code } : { error });
    }
  }

  #join(address, iceServers) {
    this.#line = new Line({
      address,
      iceServers,
      microphone: this.#microphone,
      participant: null,
      joinedAs: () => {},
      voice: (voice) => this.#change({ voice }),
      up: () => this.#change({ trouble: '' }),
      trouble: () => this.#change({ trouble: text.trouble }),
      note: (note) => this.#take(note),
      down: ({ code }) => this.#end({ failed: code in text.failed ? code : 'trouble' }),
    });
    this.#line.start();
  }

  /** What the server tells in the data channel. */
  #take({ type, place: at, role, text: content, reason }) {
    if (type === 'joined') {
      this.#isJoined = true;
      this.#change({ stage: 'talking' });
    }
    if (type === 'caption') {
      this.#turns.set(at, { role, content: content === WORDLESS ? text.wordless : String(content) });
      if (this.#turns.size > MOST) this.#turns.delete(Math.min(...this.#turns.keys()));
      this.#change({ turns: [...this.#turns].sort(([one], [two]) => one - two).map(([, turn]) => turn) });
    }
    if (type === 'ended') this.#end(this.#isJoined ? { reason: String(reason) } : { failed: 'absent' });
  }

  press(keys) {
    this.#line?.press(keys);
  }

  mute(isMuted) {
    for (const track of this.#microphone?.getAudioTracks() ?? []) track.enabled = !isMuted;
    this.#change({ isMuted });
  }

  hangUp() {
    if (this.#isOver) return;
    this.#line?.hangUp();
    this.#end({ reason: null });
  }

  /** A room that nobody has joined would stay open until its time is over; one that was joined is told by the line. */
  #leaveRoom() {
    if (!this.#room || this.#isJoined) return;
    // The page may be on its way out.
    fetch(`${this.#rooms}/${this.#room.id}/end`, { method: 'POST', keepalive: true }).catch(() => {});
  }

  #change(change) {
    if (!this.#isOver) this.#tell(change);
  }

  #end(how) {
    if (this.#isOver) return;
    this.#line?.close();
    letGo(this.#microphone);
    this.#leaveRoom();
    this.#change({ stage: 'over', voice: null, microphone: null, trouble: '', ...how });
    this.#isOver = true;
  }
}

/** The agent's voice. Browsers may want a press before a page sounds. */
function Voice({ stream }) {
  const audio = useRef(null);
  const [isBlocked, setIsBlocked] = useState(false);
  const play = () => audio.current.play().then(() => setIsBlocked(false), ({ name }) => setIsBlocked(name === 'NotAllowedError'));
  useEffect(() => {
    audio.current.srcObject = stream;
    if (stream) play();
  }, [stream]);
  return html`<audio ref=${audio} autoplay playsinline></audio>
    ${isBlocked && html`<button class="button" onClick=${play}>${text.sound}</button>`}`;
}

/** How loud the microphone is, so that one sees that it works. */
function Level({ stream }) {
  const shown = useRef(null);
  useEffect(() => {
    const meter = new Meter((level) => { if (shown.current) shown.current.value = level; });
    meter.start(stream);
    return () => meter.stop();
  }, [stream]);
  return html`<label class="level"><span class="hint">${text.microphone}</span><meter ref=${shown} min="0" max="1"></meter></label>`;
}

function Keys({ press }) {
  const send = (event) => {
    event.preventDefault();
    press(new FormData(event.target).get('keys'));
    event.target.reset();
  };
  return html`
    <form class="with-button keys-pressed" onSubmit=${send}>
      <input name="keys" required pattern="[0-9*#]+" maxlength="32" inputmode="tel" autocomplete="off" aria-label=${text.keys} placeholder=${text.keysHint} title=${text.keysHint} />
      <button class="button quiet">${text.press}</button>
    </form>`;
}

async function loadLatency(session) {
  const [{ latency }, { entries }] = await Promise.all([call('GET', `/sessions/${session}`), call('GET', `/sessions/${session}/timeline`)]);
  const measured = entries.filter(({ kind }) => kind === 'turn_latency').slice(-MOST);
  return { latency, answers: measured.map(({ at, detail }) => ({ at, ...Object.fromEntries(stagesOf(detail)) })).reverse() };
}

/** How soon each answer came. It is measured by the server, and asked for when the agent has said something. */
function Latency({ session, said }) {
  const loaded = useLoad(() => loadLatency(session), [session]);
  useEffect(() => {
    const timer = setTimeout(loaded.reload, MEASURED_MS);
    return () => clearTimeout(timer);
  }, [said]);
  useLive(({ data }) => data.session_id === session, loaded.reload, 2_000);
  const ms = (value) => (value === undefined ? words.none : text.ms(value));
  const stages = (answer) => Object.entries(text.stages).filter(([stage]) => stage in answer).map(([stage, name]) => text.stageOf(name, answer[stage]));
  return html`
    <section class="stack tight" aria-labelledby="latency">
      <h2 id="latency">${text.latency}</h2><p class="hint">${text.latencyHint}</p>
      <${Loaded} of=${loaded}>${({ latency, answers }) => answers.length
        ? html`
          <${Facts} of=${[[text.last, ms(answers[0].packet)], [text.median, latency && ms(latency.p50_ms)], [text.p95, latency && ms(latency.p95_ms)]]} />
          <ol class="timeline">${answers.map((answer, n) => html`
            <li key=${answers.length - n}><${Time} of=${answer.at} format=${timeOfDay} />
              <span><strong>${ms(answer.packet)}</strong> <span class="hint">${stages(answer).join(', ')}</span></span></li>`)}</ol>`
        : html`<p class="muted">${text.noLatency}</p>`}<//>
    </section>`;
}

const NONE = { stage: 'ready', turns: [], trouble: '', session: null, voice: null, microphone: null, isMuted: false, failed: null, reason: null, error: null };

function endOf({ failed, reason, error }) {
  if (error) return error.message;
  if (failed) return text.failed[failed];
  return reason ? text.ended(words.plain(reason)) : text.youHungUp;
}

export function TalkNow({ all: { agent } }) {
  const [state, setState] = useState(NONE);
  const talk = useRef(null);
  const names = variablesOf(definitionOf(agent));
  useEffect(() => {
    const leave = () => talk.current?.hangUp();
    addEventListener('pagehide', leave);
    return () => {
      removeEventListener('pagehide', leave);
      leave();
    };
  }, []);
  const start = async (values) => {
    setState(NONE);
    const mine = new Talk((change) => mine === talk.current && setState((now) => ({ ...now, ...change })));
    talk.current = mine;
    mine.start({ agent_id: agent.id, expires_in_seconds: EXPIRES_SECONDS, variables: variablesFrom(values, names) });
  };
  const { stage, turns, trouble, session, voice, microphone, isMuted } = state;
  const beginning = useRef(null);
  // The button that has ended it, or the whole talk, is gone.
  useEffect(() => { if (stage === 'over') beginning.current.querySelector('button').focus(); }, [stage]);
  const isOn = ['asking', 'connecting', 'talking'].includes(stage);
  const said = `${turns.filter(({ role }) => role === 'agent').length} ${stage}`;
  return html`
    <p>${text.about}</p>
    ${place.value.env === 'live' && html`<p class="notice">${text.live}</p>`}
    ${agent.recording.enabled && html`<p class="notice">${text.recorded}</p>`}
    <div class="talk-start" hidden=${isOn} ref=${beginning}><${Form} act=${start} submit=${stage === 'over' ? text.again : text.start}><${Variables} of=${names} /><//></div>
    <div class="talk-now">
      <p role="status">${stage === 'over' ? `${text.stage.over} ${endOf(state)}` : text.stage[stage]}</p>
      ${trouble && html`<p class="error block" role="alert">${trouble}</p>`}
      <${Voice} stream=${voice} />
      ${isOn && html`<${Controls} ...${{ stage, isMuted, microphone }} talk=${talk.current} />`}
    </div>
    ${session && html`
      <div class="columns">
        <section class="stack tight" aria-labelledby="said">
          <h2 id="said">${text.said}</h2>
          ${turns.length
            ? html`<${Turns} turns=${turns} name=${(role) => (role === 'agent' ? agent.name : text.you)} aria-live="polite" />`
            : html`<p class="muted">${text.nothing}</p>`}
        </section>
        <${Latency} key=${session} session=${session} said=${said} />
      </div>
      <p><a href=${to('calls', session)}>${text.call}</a></p>`}`;
}

function Controls({ talk, stage, isMuted, microphone }) {
  const end = useRef(null);
  // The button that was pressed is gone.
  useEffect(() => end.current.focus(), []);
  return html`
    <div class="actions left">
      <button ref=${end} class="button danger" onClick=${() => talk.hangUp()}>${stage === 'talking' ? text.hangUp : text.cancel}</button>
      ${microphone && html`<button class="button quiet" onClick=${() => talk.mute(!isMuted)}>${isMuted ? text.unmute : text.mute}</button>`}
    </div>
    ${microphone && html`<${Level} stream=${microphone} />`}
    ${stage === 'talking' && html`<${Keys} press=${(keys) => talk.press(keys)} />`}`;
}
