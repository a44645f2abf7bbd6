// The microphone, and how loud something is.

/** Why there is no microphone, in one of the words of `failures`. */
class NoMicrophone extends Error {
  constructor(code) {
    super(code);
    this.code = code;
  }
}

const CODES = {
  NotAllowedError: 'denied', SecurityError: 'denied',
  NotFoundError: 'no_microphone', OverconstrainedError: 'no_microphone',
  NotReadableError: 'microphone_busy', AbortError: 'microphone_busy',
};

/** Asks for the microphone. The browser asks the person, who may take their time. */
export async function ask() {
  try {
    return await navigator.mediaDevices.getUserMedia({
      audio: { echoCancellation: true, noiseSuppression: true, autoGainControl: true },
    });
  } catch (error) {
    throw new NoMicrophone(CODES[error.name] ?? 'microphone_busy');
  }
}

let shared = null;

/** One for the page. Where the browser wants a press before it runs, the next one will do. */
function context() {
  if (!shared) {
    shared = new AudioContext();
    for (const press of ['pointerdown', 'keydown']) addEventListener(press, () => shared.resume().catch(() => {}));
  }
  if (shared.state === 'suspended') shared.resume().catch(() => {});
  return shared;
}

/** Quieter than this is silence, decibels of full scale. */
const FLOOR_DB = -52;
/** As loud as people speak into a microphone. */
const LOUD_DB = -14;

/** Shows how loud a stream is, 0 to 1, with every picture that the browser draws. */
export class Meter {
  #show;
  #frame = 0;
  #source = null;
  #analyser = null;

  constructor(show) {
    this.#show = show;
  }

  start(stream) {
    this.stop();
    const audio = context();
    this.#analyser = audio.createAnalyser();
    this.#analyser.fftSize = 1024;
    this.#source = audio.createMediaStreamSource(stream);
    this.#source.connect(this.#analyser);
    const wave = new Float32Array(this.#analyser.fftSize);
    let level = 0;
    const draw = () => {
      this.#analyser.getFloatTimeDomainData(wave);
      const power = wave.reduce((sum, sample) => sum + sample * sample, 0) / wave.length;
      const loud = (10 * Math.log10(power + 1e-12) - FLOOR_DB) / (LOUD_DB - FLOOR_DB);
      // Up at once, down slowly, as meters do.
      level = Math.max(Math.min(Math.max(loud, 0), 1), level - 0.04);
      this.#show(level);
      this.#frame = requestAnimationFrame(draw);
    };
    draw();
  }

  stop() {
    cancelAnimationFrame(this.#frame);
    this.#source?.disconnect();
    this.#source = null;
    this.#analyser = null;
    this.#show(0);
  }
}
