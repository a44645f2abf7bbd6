// Runs beside the page, where the sound comes by: hands it on in pieces of a twentieth of a second or so.
const PIECE = 2_048;

registerProcessor('recorder', class extends AudioWorkletProcessor {
  #piece = new Float32Array(PIECE);
  #filled = 0;

  process([[sound]]) {
    // None yet, or none any more.
    if (!sound) return true;
    this.#piece.set(sound, this.#filled);
    this.#filled += sound.length;
    if (this.#filled === PIECE) {
      this.port.postMessage(this.#piece);
      this.#piece = new Float32Array(PIECE);
      this.#filled = 0;
    }
    return true;
  }
});
