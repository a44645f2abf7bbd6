// The library of the pages, under the names that they use.
import { Fragment, h, render } from './vendor/preact.js';
import { useCallback, useEffect, useRef, useState } from './vendor/hooks.js';
import htm from './vendor/htm.js';

export { computed, effect, signal } from './vendor/signals.js';
export { Fragment, render, useCallback, useEffect, useRef, useState };
export const html = htm.bind(h);
