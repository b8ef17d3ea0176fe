// Binds htm to Preact, so that views import from here alone.
import { h, render, createContext } from "../vendor/preact/preact.js";
import { useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact/hooks.js";
import htm from "../vendor/htm/htm.js";

export const html = htm.bind(h);
export { render, createContext, useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState };
