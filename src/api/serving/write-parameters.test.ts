import { describe, expect, test } from 'vitest'
import { ApiError } from '../../core/index.ts'
import type { OptionsKind } from './call.ts'
import { writeParametersOf } from './call.ts'

const read = (query: string, kind: OptionsKind = 'CreateOptions') =>
  writeParametersOf(new URLSearchParams(query), kind)

/** The message of the refusal. */
function refusal(query: string, kind?: OptionsKind): string {
  try {
    read(query, kind)
  } catch (error) {
    if (error instanceof ApiError && error.reason === 'Invalid') return error.message
    throw error
  }
  return ''
}

describe('the parameters of a write [GND-R58]', () => {
  test.each([
    ['', { dryRun: false, fieldValidation: 'Warn' }],
    ['dryRun=All', { dryRun: true, fieldValidation: 'Warn' }],
    ['dryRun=All&dryRun=All', { dryRun: true, fieldValidation: 'Warn' }],
    ['fieldValidation=Strict', { dryRun: false, fieldValidation: 'Strict' }],
    ['fieldManager=kubectl-client-side-apply', { dryRun: false, fieldValidation: 'Warn' }],
  ])('%s', (query, parameters) => {
    expect(read(query)).toEqual(parameters)
  })

  test.each<[string, OptionsKind, string]>([
    [
      'dryRun=All&dryRun=None',
      'CreateOptions',
      'dryRun: Unsupported value: ["All","None"]: supported values: "All"',
    ],
    ['dryRun=', 'UpdateOptions', 'dryRun: Unsupported value: [""]: supported values: "All"'],
    [
      'fieldValidation=strict',
      'PatchOptions',
      'fieldValidation: Unsupported value: "strict": supported values: "", "Ignore", "Strict", "Warn"',
    ],
    ['force=true', 'PatchOptions', 'force: Forbidden: may not be specified for non-apply patch'],
    [
      `fieldManager=${'m'.repeat(129)}`,
      'CreateOptions',
      'fieldManager: Too long: may not be more than 128 bytes',
    ],
    [
      'fieldManager=%C3%A4%00',
      'CreateOptions',
      'fieldManager: Invalid value: "ä\\x00": invalid character U+0000 (at position 2)',
    ],
  ])('%s is refused', (query, kind, problem) => {
    expect(refusal(query, kind)).toBe(`${kind}.meta.k8s.io "" is invalid: ${problem}`)
  })

  test('all that is wrong is said at once [GND-R62]', () => {
    expect(refusal('dryRun=Some&fieldValidation=Odd&force=1', 'PatchOptions')).toMatch(
      /force: Forbidden.*dryRun: Unsupported.*fieldValidation: Unsupported/,
    )
  })

  test('force means nothing to other writes', () => {
    expect(refusal('force=true', 'UpdateOptions')).toBe('')
  })
})
