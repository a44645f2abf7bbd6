// The library of the pages, under the names that they use.
import { Fragment, createContext, h, render } from './vendor/preact.js';
import { useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from './vendor/hooks.js';
import htm from './vendor/htm.js';

export { computed, effect, signal } from './vendor/signals.js';
export { Fragment, createContext, render, useCallback, useContext, useEffect, useId, useLayoutEffect, useMemo, useRef, useState };
export const html = htm.bind(h);
