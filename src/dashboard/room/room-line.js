// The connection to the agent: made, kept up, and made again when it breaks.

/** A first connection that does not stand after this long will not come. */
const FIRST_MS = 15_000;
/** The service keeps the talk this long without us. */
const AGAIN_MS = 30_000;
/** An interruption shorter than this heals by itself. */
const PATIENCE_MS = 3_000;
/** One try of several; a path that works is found sooner. */
const TRY_MS = 8_000;
/** Addresses that are not known by then are left out of the offer. */
const GATHER_MS = 2_000;
/** Between two tries, unless the network comes back sooner. */
const PAUSE_MS = 1_500;

/** Why there is no connection, in one of the words of `failures`. */
export class Refused extends Error {
  constructor(code) {
    super(code);
    this.code = code;
  }
}

/** Where a second try may succeed. */
const PASSING = ['network', 'no_path', 'trouble', 'too_many_tries'];

export class Line {
  #options;
  #participant;
  #connection = null;
  #channel = null;
  #over = false;
  #hungUp = false;
  #patience = null;
  #remaking = false;
  /** Ends whatever is waited for. */
  #ended = new AbortController();

  /**
   * `address(below, more)` makes addresses of the room, `participant` is who we already are in it, or nobody.
   * Told: `joinedAs(participant)`, `voice(stream)`, `up()`, `trouble()`, `note(json)`, `down(Refused)`.
   */
  constructor(options) {
    this.#options = options;
    this.#participant = options.participant;
  }

  start() {
    return this.#participant ? this.#makeWithin(AGAIN_MS, true) : this.#makeWithin(FIRST_MS, false);
  }

  /** Tries until it stands, or time or the service says no. A first try that reaches nobody is not repeated: the person is asked. */
  async #makeWithin(limit, again) {
    const deadline = performance.now() + limit;
    while (!this.#over) {
      try {
        await this.#make(Math.min(TRY_MS, deadline - performance.now()));
        if (!this.#over) this.#options.up();
        return;
      } catch (error) {
        if (this.#over) return;
        const code = error instanceof Refused ? error.code : 'trouble';
        const final = again ? !PASSING.includes(code) : code !== 'no_path';
        if (final || deadline - performance.now() < PAUSE_MS) {
          this.close();
          this.#options.down(new Refused(this.#inWords(code, final, again)));
          return;
        }
      }
      await pause(PAUSE_MS, this.#ended.signal);
    }
  }

  /** What the person is told: a talk that is gone was there once, if we were in it. */
  #inWords(code, final, again) {
    if (!final) return again ? 'lost' : 'no_path';
    if (code !== 'gone' || !this.#participant) return code;
    return again ? 'over' : 'no_path';
  }

  async #make(limit) {
    this.#connection?.close();
    const { iceServers, microphone, voice, note } = this.#options;
    const connection = new RTCPeerConnection({ iceServers, bundlePolicy: 'max-bundle' });
    this.#connection = connection;
    for (const track of microphone.getAudioTracks()) connection.addTrack(track, microphone);
    connection.ontrack = ({ track, streams }) => voice(streams[0] ?? new MediaStream([track]));
    const channel = connection.createDataChannel('callboard');
    channel.onmessage = ({ data }) => {
      const told = parsed(data);
      if (told && !this.#over) note(told);
    };
    this.#channel = channel;
    await connection.setLocalDescription();
    await gathered(connection);
    const answer = await this.#offer(connection.localDescription.sdp, limit);
    await connection.setRemoteDescription({ type: 'answer', sdp: answer });
    await connected(connection, limit);
    connection.onconnectionstatechange = () => this.#watch(connection);
    // Closed by the other side: nothing comes after it.
    channel.onclose = () => this.#broken(connection);
    this.#watch(connection);
  }

  /** Hands in our offer; the answer is the service's. */
  async #offer(sdp, limit) {
    const more = this.#participant ? { participant: this.#participant } : {};
    const response = await fetch(this.#options.address('/whip', more), {
      method: 'POST',
      headers: { 'Content-Type': 'application/sdp' },
      body: sdp,
      signal: AbortSignal.timeout(Math.max(1, limit)),
    }).catch(() => { throw new Refused('network'); });
    if (response.status !== 201) throw new Refused(await refusal(response));
    this.#participant = new URL(response.headers.get('Location'), location.href).pathname.split('/').pop();
    if (this.#hungUp) this.#tellGone();
    else if (!this.#over) this.#options.joinedAs(this.#participant);
    return response.text().catch(() => { throw new Refused('network'); });
  }

  #watch(connection) {
    clearTimeout(this.#patience);
    if (connection !== this.#connection || this.#over) return;
    if (connection.connectionState === 'failed') this.#broken(connection);
    if (connection.connectionState === 'disconnected') {
      this.#patience = setTimeout(() => this.#broken(connection), PATIENCE_MS);
    }
  }

  async #broken(connection) {
    if (connection !== this.#connection || this.#over || this.#remaking) return;
    clearTimeout(this.#patience);
    this.#remaking = true;
    this.#options.trouble();
    await this.#makeWithin(AGAIN_MS, true);
    this.#remaking = false;
  }

  press(digits) {
    if (this.#channel?.readyState === 'open') this.#channel.send(JSON.stringify({ type: 'keys', digits }));
  }

  /** Another microphone from here on, in the connection that stands and in those to come. */
  async speakInto(microphone) {
    this.#options.microphone = microphone;
    await this.#connection?.getSenders()[0]?.replaceTrack(microphone.getAudioTracks()[0]);
  }

  /** Leaves without a word: the talk waits for us a while, or goes on in another tab. */
  close() {
    this.#over = true;
    this.#ended.abort();
    clearTimeout(this.#patience);
    this.#connection?.close();
  }

  /** Ends the talk. An offer that is on its way is answered first, and then told the same. */
  hangUp() {
    this.#hungUp = true;
    this.close();
    if (this.#participant) this.#tellGone();
  }

  #tellGone() {
    const below = `/whip/${encodeURIComponent(this.#participant)}`;
    fetch(this.#options.address(below), { method: 'DELETE', keepalive: true }).catch(() => {});
  }
}

/** The word for an answer that is no answer. */
async function refusal(response) {
  const { error } = await response.json().catch(() => ({}));
  switch (response.status) {
    case 404: return 'gone';
    case 409: return 'occupied';
    case 402: case 403: return 'unavailable';
    case 429: return error?.code === 'concurrency_full' ? 'full' : 'too_many_tries';
    case 415: case 422: return 'old_browser';
    default: return 'trouble';
  }
}

function parsed(text) {
  try { return JSON.parse(text); } catch { return null; }
}

/** Settles once the connection says so; `events` are its, `done` looks at it. */
function until(connection, event, done, limit) {
  return new Promise((settle, refuse) => {
    const timer = setTimeout(() => { leave(); refuse(new Refused('no_path')); }, Math.max(1, limit));
    const leave = () => {
      clearTimeout(timer);
      connection.removeEventListener(event, look);
    };
    const look = () => {
      const outcome = done();
      if (outcome === undefined) return;
      leave();
      if (outcome) settle(); else refuse(new Refused('no_path'));
    };
    connection.addEventListener(event, look);
    look();
  });
}

const gathered = (connection) => until(
  connection, 'icegatheringstatechange', () => (connection.iceGatheringState === 'complete' ? true : undefined), GATHER_MS,
).catch(() => {});

const connected = (connection, limit) => until(connection, 'connectionstatechange', () => ({
  connected: true, failed: false, closed: false,
})[connection.connectionState], limit);

/** Waits; a network that comes back or a talk that is over cuts it short. */
function pause(ms, signal) {
  return new Promise((done) => {
    const finish = () => {
      clearTimeout(timer);
      removeEventListener('online', finish);
      done();
    };
    const timer = setTimeout(finish, ms);
    addEventListener('online', finish);
    signal.addEventListener('abort', finish, { once: true });
  });
}
