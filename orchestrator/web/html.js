// JSX without a compiler: htm bound to preact.
import { h } from 'preact';
import htm from 'htm';

export const html = htm.bind(h);
