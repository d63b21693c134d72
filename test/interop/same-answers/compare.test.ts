import { describe, expect, test } from 'vitest'
import type { Answer } from './ask.ts'
import { compareAnswers } from './compare.ts'
import { Steadier } from './steady.ts'

const place = { topic: 't', case: 'c', request: '1 GET /' }

function answer(json: unknown, more: Partial<Answer> = {}): Answer {
  return { code: 200, headers: new Map(), text: JSON.stringify(json), json, ...more }
}

/** Where two answers differ once what passes is out of them. */
function differ(ours: Answer, theirs: Answer): string[] {
  const found = compareAnswers(place, new Steadier().answer(ours), new Steadier().answer(theirs))
  return found.map(({ at }) => at)
}

const uid = (last: string) => `11111111-2222-3333-4444-55555555555${last}`
const made = (agoMs: number) => ({
  creationTimestamp: new Date(Date.now() - agoMs).toISOString().replace(/\.\d+/, ''),
})
const status = (...causes: { field: string; message: string }[]) => ({
  kind: 'Status',
  message: `X "x" is invalid: [${causes.map((one) => `${one.field}: ${one.message}`).join(', ')}]`,
  details: { causes },
})

describe('two answers are the same', () => {
  test.each<[string, unknown, unknown]>([
    ['whatever their order of fields', { a: 1, b: 2 }, { b: 2, a: 1 }],
    ['whatever their uids', { metadata: { uid: uid('1') } }, { metadata: { uid: uid('2') } }],
    [
      'whatever their versions',
      { metadata: { resourceVersion: '5' } },
      { metadata: { resourceVersion: '77' } },
    ],
    [
      'whatever the order of their causes',
      status({ field: 'a', message: '1' }, { field: 'b', message: '2' }),
      status({ field: 'b', message: '2' }, { field: 'a', message: '1' }),
    ],
    ['whenever they were made', made(0), made(60_000)],
  ])('%s', (_name, ours, theirs) => {
    expect(differ(answer(ours), answer(theirs))).toEqual([])
  })
})

describe('two answers differ', () => {
  test.each<[string, Answer, Answer, string[]]>([
    ['in their code', answer({}, { code: 200 }), answer({}, { code: 201 }), ['code']],
    ['in a value', answer({ a: { b: 1 } }), answer({ a: { b: 2 } }), ['body.a.b']],
    ['in a field that one lacks', answer({}), answer({ a: 1 }), ['body.a']],
    ['in the length of a list', answer({ a: [1] }), answer({ a: [1, 2] }), ['body.a.1']],
    ['in their kind, as a whole', answer({ kind: 'A', x: 1 }), answer({ kind: 'B' }), ['body']],
    [
      'in a header',
      answer({}, { headers: new Map([['warning', ['299 - "x"']]]) }),
      answer({}),
      ['headers.warning'],
    ],
    [
      'in which object has which uid',
      answer([{ uid: uid('1') }, { uid: uid('1') }]),
      answer([{ uid: uid('1') }, { uid: uid('2') }]),
      ['body.1.uid'],
    ],
    [
      'in whether the version has changed',
      answer([{ resourceVersion: '5' }, { resourceVersion: '5' }]),
      answer([{ resourceVersion: '5' }, { resourceVersion: '6' }]),
      ['body.1.resourceVersion'],
    ],
    [
      'in a cause',
      answer(status({ field: 'a', message: '1' }, { field: 'b', message: '2' })),
      answer(status({ field: 'a', message: '1' }, { field: 'b', message: '3' })),
      ['body.details.causes.1.message'],
    ],
    [
      'in a cause that is given twice',
      answer(status({ field: 'a', message: '1' }, { field: 'b', message: '2' })),
      answer({
        ...status({ field: 'a', message: '1' }, { field: 'b', message: '2' }),
        details: {
          causes: [
            { field: 'a', message: '1' },
            { field: 'b', message: '2' },
            { field: 'a', message: '1' },
          ],
        },
      }),
      ['body.details.causes.2'],
    ],
    [
      'in plain text',
      answer(undefined, { text: 'ok' }),
      answer(undefined, { text: 'no' }),
      ['body'],
    ],
  ])('%s', (_name, ours, theirs, at) => {
    expect(differ(ours, theirs)).toEqual(at)
  })
})
