import { describe, expect, test } from 'vitest'
import { readPatched } from './checked-object.ts'
import { parseJson } from './json.ts'
import { maxWork } from './limits.ts'

const expected = { group: '', version: 'v1', kind: 'ConfigMap' }
const outcome = (more: object) => ({ kind: 'ConfigMap', apiVersion: 'v1', metadata: {}, ...more })

describe('the outcome of a patch [GND-R58]', () => {
  test('comes out in the form of its kind', () => {
    const read = readPatched(outcome({ data: {}, foo: 1 }), {
      expected,
      fieldValidation: 'Ignore',
      work: maxWork(),
    })
    expect(read).toEqual({ object: outcome({}), warnings: [] })
  })

  test('an unknown field is warned about', () => {
    const read = readPatched(outcome({ foo: 1 }), {
      expected,
      fieldValidation: 'Warn',
      work: maxWork(),
    })
    expect(read).toEqual({ object: outcome({}), warnings: ['unknown field "foo"'] })
  })

  test.each([
    ['an unknown field', { foo: 1 }, 'strict decoding error: unknown field "foo"'],
    [
      'a value of the wrong type',
      { data: { a: 1 } },
      'json: cannot unmarshal number into Go struct field ConfigMap.data of type string',
    ],
  ])('%s is a 422 about the patch', (_name, more, why) => {
    const message = `Invalid value: "the patched object": ${why}`
    expect(() =>
      readPatched(outcome(more), { expected, fieldValidation: 'Strict', work: maxWork() }),
    ).toThrow(
      expect.objectContaining({
        reason: 'Invalid',
        message: ` "" is invalid: patch: ${message}`,
        details: { causes: [{ reason: 'FieldValueInvalid', message, field: 'patch' }] },
      }),
    )
  })

  test('the error does not show what the sender may not be allowed to read', () => {
    const sent = outcome({ data: { password: 'hunter2' }, foo: 1 })
    const attempt = () =>
      readPatched(sent, { expected, fieldValidation: 'Strict', work: maxWork() })
    expect(attempt).toThrow(/unknown field/)
    expect(attempt).not.toThrow(/hunter2/)
  })

  test('a field that the patch itself has twice counts, one that it does not know does not', () => {
    const patch = parseJson(Buffer.from('{"$patch":"merge","data":{"a":"1","a":"2"}}'))
    const read = readPatched(outcome({ data: { a: '2' } }), {
      expected,
      fieldValidation: 'Warn',
      work: maxWork(),
      patch,
    })
    expect(read.warnings).toEqual(['duplicate field "data.a"'])
  })
})
