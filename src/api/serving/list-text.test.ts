import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { compactJson, prettyJson, yamlText } from './list.ts'
import { loadYamlWriter } from './response.ts'
import type { ListView } from './views.ts'

const view: ListView = {
  frame: { kind: 'ThingList', apiVersion: 'v1', metadata: { resourceVersion: '7' } },
  itemsField: 'items',
  itemOf: (object) => object,
}

const asYaml = yamlText(await loadYamlWriter())
const whole = (items: readonly unknown[]) => ({ ...view.frame, items })

const lists = fc.array(
  fc.dictionary(fc.string(), fc.oneof(fc.string({ unit: 'binary' }), fc.jsonValue())),
)

test('a list in one line is what it would be as a whole', () => {
  fc.assert(
    fc.property(lists, (items) => {
      expect([...compactJson(view, items)].join('')).toBe(`${JSON.stringify(whole(items))}\n`)
    }),
  )
})

test('a list for people is what it would be as a whole', () => {
  fc.assert(
    fc.property(lists, (items) => {
      const text = [...prettyJson(view, items)].join('')
      expect(text).toBe(JSON.stringify(whole(items), undefined, 2))
    }),
  )
})

test.each([
  ['no items', []],
  ['texts of several lines', [{ a: 'x\ny\n' }, { a: 'x\n\ny' }]],
  ['line breaks at the end', [{ a: 'x\n\n\n' }, { b: '\n' }, { c: '\n\n' }]],
  ['spaces', [{ a: '  x\n y\n   ' }, { b: '\t\n \n' }]],
  ['long texts', [{ a: 'word '.repeat(100) }, { b: `"${'x y\n'.repeat(60)}` }]],
  ['lists in lists', [{ a: [[{ b: 'x\ny' }]] }]],
  ['an empty item', [{}, { a: null }]],
])('YAML of %s says the same as the whole', (_what, items) => {
  expect(parse([...asYaml(view, items)].join(''))).toEqual(whole(items))
})

test('YAML of any list says the same as the whole', () => {
  const texts = fc.array(
    fc.dictionary(
      fc.stringMatching(/^[a-z.]{1,9}$/),
      fc.stringMatching(/^(?:[a-z"'#:-]| |\n|\t){0,120}$/),
    ),
  )
  fc.assert(
    fc.property(texts, (items) => {
      expect(parse([...asYaml(view, items)].join(''))).toEqual(whole(items))
    }),
  )
})
