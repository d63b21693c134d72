import type { ListView } from './views.ts'
import type { YamlWriter } from './yaml-text.ts'

/** A list of items as text, piece by piece, so that no more than one item is in memory at a time. */
export type ListText = (view: ListView, items: Iterable<unknown>) => Generator<string>

/** The list as JSON in one line. */
export const compactJson: ListText = function* ({ frame, itemsField }, items) {
  yield `${JSON.stringify(frame).slice(0, -1)},"${itemsField}":[`
  let separator = ''
  for (const item of items) {
    yield separator + JSON.stringify(item)
    separator = ','
  }
  yield ']}\n'
}

/** Lines after the first, moved to the right; empty ones stay empty. */
const indented = (text: string, by: string): string => text.replaceAll(/\n(?!\n|$)/g, `\n${by}`)

/** The list as JSON for people. */
export const prettyJson: ListText = function* ({ frame, itemsField }, items) {
  yield `${JSON.stringify(frame, undefined, 2).slice(0, -2)},\n  "${itemsField}": [`
  let separator = ''
  for (const item of items) {
    yield `${separator}\n    ${indented(JSON.stringify(item, undefined, 2), '    ')}`
    separator = ','
  }
  yield separator === '' ? ']\n}' : '\n  ]\n}'
}

/** The list as YAML. */
export const yamlText = (stringify: YamlWriter): ListText =>
  function* ({ frame, itemsField }, items) {
    yield `${stringify(frame)}${itemsField}:`
    let isEmpty = true
    for (const item of items) {
      // Without its last line break only: others before it may belong to a text.
      yield `\n  - ${indented(stringify(item).replace(/\n$/, ''), '    ')}`
      isEmpty = false
    }
    yield isEmpty ? ' []\n' : '\n'
  }
