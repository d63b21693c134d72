import { WrongUsage } from '../core/index.ts'

/** Regular expressions of which one is enough. */
export type PatternList = readonly RegExp[]

/** Reads a list as kubectl does: split at every comma, each part unanchored, nothing matches an empty list. */
export function parsePatterns(text: string, flag: string): PatternList {
  return text === '' ? [] : text.split(',').map((part) => compile(part, flag))
}

/** Whether one of the patterns matches somewhere in the text. */
export const matchesAny = (patterns: PatternList, text: string): boolean =>
  patterns.some((pattern) => pattern.test(text))

function compile(source: string, flag: string): RegExp {
  const { body, flags } = fromGo(source)
  try {
    return new RegExp(body, flags)
  } catch {
    throw new WrongUsage(`--${flag}: ${JSON.stringify(source)} is no regular expression`)
  }
}

/** What Go writes differently: flags in front, named groups, ends of the text. */
function fromGo(source: string): { readonly body: string; readonly flags: string } {
  const leading = /^\(\?([ims]+)\)/.exec(source)
  const body = source
    .slice(leading?.[0].length ?? 0)
    .replaceAll('(?P<', '(?<')
    .replaceAll(/\\([Az])/g, (_match, end: string) => (end === 'A' ? '^' : '$'))
  return { body, flags: [...new Set(leading?.[1] ?? '')].join('') }
}
