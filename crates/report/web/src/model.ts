// The page's model without its views, for tests: `node` computes the tables that a page would show.

export { CallTree, Shape } from './calltree';
export { decode } from './data';
export { compare } from './diff';
export { functions } from './flat';
export { callees, calleesOf, callersOf, byLeaf } from './graph';
export { initialFilter } from './selection';
export { linesOf } from './source';
