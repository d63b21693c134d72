import { foldHeaderName, isIdentityHeader } from '../../http/index.ts'

/** Tells whether a header claims an identity, in any spelling; `emitted` are the names under which we state ours. */
export function identityNameTest(emitted: readonly string[]): (name: string) => boolean {
  const ours = new Set(['x-authorization', ...emitted.map(foldHeaderName)])
  return (name) => isIdentityHeader(name) || ours.has(foldHeaderName(name))
}
