// Two parts of the page with a life of their own: what is said, and the keypad.

/** More turns than this are not kept on the page. */
const MOST = 400;

/** What the service writes where nobody puts speech into words. */
const WORDLESS = '[speech]';

/** What is said, in the order of its places. A turn that is told again is the same turn. */
export class Captions {
  #list;
  #hint;
  #agent;
  #turns = new Map();
  /** The newest stays in sight, unless somebody scrolled back to read. */
  #follow = true;

  constructor(list, hint, agent) {
    this.#list = list;
    this.#hint = hint;
    this.#agent = agent;
    list.addEventListener('scroll', () => {
      this.#follow = list.scrollHeight - list.scrollTop - list.clientHeight < 48;
    });
    new ResizeObserver(() => this.#showNewest()).observe(list);
  }

  #showNewest() {
    if (this.#follow) this.#list.scrollTop = this.#list.scrollHeight;
  }

  get empty() {
    return this.#turns.size === 0;
  }

  add({ place, role, text }) {
    const words = (this.#turns.get(place) ?? this.#make(place, role)).querySelector('.words');
    const shown = text === WORDLESS ? '(spoken)' : String(text);
    if (words.textContent !== shown) words.textContent = shown;
    this.#hint.hidden = true;
    this.#showNewest();
  }

  #make(place, role) {
    const turn = document.createElement('li');
    const [who, words] = [document.createElement('span'), document.createElement('span')];
    turn.dataset.place = place;
    turn.dataset.role = role;
    who.className = 'who';
    who.textContent = role === 'agent' ? this.#agent : 'You';
    words.className = 'words';
    words.dir = 'auto';
    turn.append(who, words);
    const after = [...this.#list.children].find((other) => Number(other.dataset.place) > place);
    this.#list.insertBefore(turn, after ?? null);
    this.#turns.set(place, turn);
    if (this.#turns.size > MOST) {
      const oldest = this.#list.firstElementChild;
      this.#turns.delete(Number(oldest.dataset.place));
      oldest.remove();
    }
    return turn;
  }
}

/** The last keys pressed that are shown. */
const SHOWN = 24;
/** Keys that follow each other sooner than this belong together, as those of a number do. */
const TOGETHER_MS = 1_200;
/** As many as the service takes at once. */
const AT_ONCE = 32;

/** Keys for an agent that asks for some; while it is open, the keyboard's digits count too. */
export class Keypad {
  #pad;
  #opener;
  #press;
  #pressed;
  #gathered = '';
  #timer = null;

  /** `press` takes the keys, one or several. */
  constructor(pad, opener, press) {
    this.#pad = pad;
    this.#opener = opener;
    this.#press = press;
    this.#pressed = pad.querySelector('output');
    opener.addEventListener('click', () => (pad.hidden ? this.#open() : this.close()));
    pad.querySelector('#keypad-close').addEventListener('click', () => this.close());
    for (const button of pad.querySelectorAll('[data-key]')) {
      button.addEventListener('click', () => this.#take(button.dataset.key));
    }
    document.addEventListener('keydown', (event) => this.#type(event));
  }

  #open() {
    this.#pad.hidden = false;
    this.#opener.setAttribute('aria-expanded', 'true');
    this.#pad.querySelector('[data-key]').focus();
  }

  close() {
    if (this.#pad.hidden) return;
    this.#send();
    const inside = this.#pad.contains(document.activeElement);
    this.#pad.hidden = true;
    this.#pressed.textContent = '';
    this.#opener.setAttribute('aria-expanded', 'false');
    if (inside) this.#opener.focus();
  }

  #type(event) {
    if (this.#pad.hidden || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape') this.close();
    if (/^[0-9*#]$/.test(event.key) && !event.repeat) this.#take(event.key);
  }

  #send() {
    clearTimeout(this.#timer);
    if (this.#gathered) this.#press(this.#gathered);
    this.#gathered = '';
  }

  #take(key) {
    clearTimeout(this.#timer);
    this.#gathered += key;
    // A hash ends what is typed, as on every telephone.
    if (key === '#' || this.#gathered.length === AT_ONCE) this.#send();
    else this.#timer = setTimeout(() => this.#send(), TOGETHER_MS);
    this.#pressed.textContent = (this.#pressed.textContent + key).slice(-SHOWN);
    const button = this.#pad.querySelector(`[data-key="${CSS.escape(key)}"]`);
    button.classList.remove('pressed');
    // Read, so that the same mark a second time plays again.
    void button.offsetWidth;
    button.classList.add('pressed');
  }
}
