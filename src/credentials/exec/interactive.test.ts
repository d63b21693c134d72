import { describe, expect, test } from 'vitest'
import type { CredentialError } from '../errors.ts'
import { inTurn, isInteractive } from './plugin-environment.ts'
import { execConfig, labHost, version } from './plugin-lab.suite.ts'

const decide = (
  mode: string | undefined,
  terminal: boolean,
  unavailable?: string | true,
  apiVersion = version('v1'),
): boolean | string => {
  const { interactiveMode: _, ...exec } = execConfig('plugin', { apiVersion })
  const host = labHost({
    stdinIsTty: () => terminal,
    ...(unavailable !== undefined && { stdinUnavailable: unavailable }),
  })
  try {
    return isInteractive(mode === undefined ? exec : { ...exec, interactiveMode: mode }, host)
  } catch (error) {
    const { code, message } = error as CredentialError
    return `${code} ${message}`
  }
}

describe('who gets stdin', () => {
  test.each([
    ['Never', false, undefined, false],
    ['Never', true, undefined, false],
    ['Never', true, true, false],
    ['IfAvailable', false, undefined, false],
    ['IfAvailable', true, undefined, true],
    ['IfAvailable', true, true, false],
    ['IfAvailable', true, 'reason', false],
    ['Always', true, undefined, true],
  ] as const)('%s, terminal %s, in use %s [CRED-E5, CRED-R11]', (mode, terminal, used, gets) => {
    expect(decide(mode, terminal, used)).toBe(gets)
  })

  test.each([
    [false, undefined, 'stdin is not a terminal'],
    [false, 'reading -f -', 'stdin is not a terminal'],
    [true, true, 'stdin is in use'],
    [true, 'reading -f -', 'stdin is in use: reading -f -'],
  ] as const)('Always, terminal %s, in use %s: %s [CRED-E5]', (terminal, used, why) => {
    expect(decide('Always', terminal, used)).toMatch(
      new RegExp(`^INTERACTIVE_UNAVAILABLE .*: ${why}$`),
    )
  })

  test.each([
    ['v1alpha1', undefined, true],
    ['v1beta1', undefined, true],
    ['v1', undefined, 'CONFIG_INVALID'],
    ['v1', 'Sometimes', 'CONFIG_INVALID'],
    ['v1beta1', 'never', 'CONFIG_INVALID'],
  ] as const)('%s with the mode %s [CRED-E6]', (name, mode, outcome) => {
    const decided = decide(mode, true, undefined, version(name))
    expect(typeof decided === 'string' ? decided.split(' ')[0] : decided).toBe(outcome)
  })
})

describe('conversations with the user', () => {
  const gate = () => {
    let open: () => void = () => {}
    const opened = new Promise<void>((resolve) => {
      open = resolve
    })
    return { open, opened }
  }

  test('take turns, and a failed one does not stop the next [CRED-E7]', async () => {
    const first = gate()
    const heard: string[] = []
    const one = inTurn(async () => {
      heard.push('one begins')
      await first.opened
      heard.push('one ends')
      throw new Error('one fails')
    })
    const two = inTurn(() => Promise.resolve(heard.push('two')))
    first.open()
    await expect(one).rejects.toThrow('one fails')
    await two
    expect(heard).toEqual(['one begins', 'one ends', 'two'])
  })

  test('whoever gives up does not wait, and nobody overtakes because of it [CRED-E7]', async () => {
    const first = gate()
    const heard: string[] = []
    const one = inTurn(() => first.opened)
    const signal = AbortSignal.abort()
    const two = inTurn(() => Promise.reject(new Error('given up')), signal)
    const three = inTurn(() => Promise.resolve(heard.push('three')))
    await expect(two).rejects.toThrow('given up')
    expect(heard).toEqual([])
    first.open()
    await Promise.all([one, three])
    expect(heard).toEqual(['three'])
  })
})
