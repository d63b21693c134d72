import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { labelSelectorFromSet, parseLabelSelector } from './index.ts'

const labels = { app: 'web', tier: 'front', 'example.com/rank': '7', empty: '' }

test.each([
  ['', true],
  ['app', true],
  ['!app', false],
  ['!absent', true],
  ['app=web', true],
  ['app==web', true],
  ['app=db', false],
  ['app!=db', true],
  ['app!=web', false],
  ['absent!=web', true],
  ['app in (web,db)', true],
  ['app in (db)', false],
  ['absent in (web)', false],
  ['app notin (web,db)', false],
  ['absent notin (web)', true],
  ['empty=', true],
  ['empty in ()', true],
  ['app in (,web)', true],
  ['example.com/rank>6', true],
  ['example.com/rank>7', false],
  ['example.com/rank<8', true],
  ['app>1', false],
  ['absent<8', false],
  ['app=web,tier=front', true],
  ['app=web,tier=back', false],
  [' app = web , tier\tin ( front , back ) ', true],
  ['in in (in)', false],
  ['constructor', false],
  ['!toString', true],
])('the label selector %j answers %j [GND-R54]', (text, answer) => {
  expect(parseLabelSelector(text)(labels)).toBe(answer)
})

const nameRule =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

test.each([
  ['a b', "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
  ['a=b c', "found 'c', expected: ',' or 'end of string'"],
  ['=b', "found '=', expected: !, identifier, or 'end of string'"],
  ['a,', "found '', expected: identifier after ','"],
  ['a,,b', "found ',', expected: identifier after ','"],
  ['!', "unable to parse requirement: found '', expected: identifier"],
  ['a in', "unable to parse requirement: found '' expected: '('"],
  ['a in (', "unable to parse requirement: found '', expected: ',', ')' or identifier"],
  ['a in (b', "unable to parse requirement: found '', expected: ',' or ')'"],
  ['a in (b,', "unable to parse requirement: found '', expected: ',', or identifier"],
  ['a==(', "unable to parse requirement: found '(', expected: identifier"],
  [
    'a>b',
    `unable to parse requirement: values[0]: Invalid value: "b": for 'Gt', 'Lt' operators, the value must be an integer`,
  ],
  ['-a', `unable to parse requirement: <nil>: Invalid value: "-a": name part ${nameRule}`],
  [
    'a/b/c',
    `unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key ${nameRule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
  ],
  ['/b', 'unable to parse requirement: <nil>: Invalid value: "/b": prefix part must be non-empty'],
])('the label selector %j is a 400 in Kubernetes words', (text, message) => {
  expect(() => parseLabelSelector(text)).toThrow(
    expect.objectContaining({ reason: 'BadRequest', message }),
  )
})

test('every bad value of a requirement is named', () => {
  expect(() => parseLabelSelector('a in (-x,-y)')).toThrow(
    /^unable to parse requirement: \[values\[0\]\[a\]: Invalid value: "-x".*, values\[1\]\[a\]: Invalid value: "-y"/,
  )
})

test('a label value has at most 63 bytes', () => {
  expect(parseLabelSelector(`a=${'v'.repeat(63)}`)({ a: 'v'.repeat(63) })).toBe(true)
  expect(() => parseLabelSelector(`a=${'v'.repeat(64)}`)).toThrow('must be no more than 63 bytes')
})

describe('a parsed label selector', () => {
  test('knows that it selects everything', () => {
    expect(parseLabelSelector('').isEverything).toBe(true)
    expect(parseLabelSelector(' ').isEverything).toBe(true)
    expect(parseLabelSelector('a').isEverything).toBe(false)
  })

  test('has one canonical form', () => {
    expect(parseLabelSelector('z, b notin(y,x,y) ,!c,a=1').canonical).toBe('a=1,b notin (x,y),!c,z')
  })

  test('parses its canonical form to itself', () => {
    const key = fc.stringMatching(/^[a-z]([-a-z0-9]{0,5}[a-z0-9])?$/)
    const value = fc.stringMatching(/^([a-z0-9]{0,5})$/)
    const requirement = fc.oneof(
      key,
      key.map((k) => `!${k}`),
      fc.tuple(key, fc.constantFrom('=', '==', '!='), value).map((parts) => parts.join('')),
      fc
        .tuple(key, fc.constantFrom('in', 'notin'), fc.array(value))
        .map(([k, operator, values]) => `${k} ${operator} (${values.join(',')})`),
    )
    fc.assert(
      fc.property(fc.array(requirement), (requirements) => {
        const { canonical } = parseLabelSelector(requirements.join(','))
        expect(parseLabelSelector(canonical).canonical).toBe(canonical)
      }),
    )
  })
})

test('a set of labels selects what has them all', () => {
  const selector = labelSelectorFromSet({ tier: 'front', app: 'web' })
  expect(selector(labels)).toBe(true)
  expect(selector({ app: 'web' })).toBe(false)
  expect(selector.canonical).toBe('app=web,tier=front')
})

test('a selector of very many requirements is refused', () => {
  const many = Array.from({ length: 251 }, (_, index) => `!l${index}`).join(',')
  expect(() => parseLabelSelector(many)).toThrow('more than 250 requirements')
})
