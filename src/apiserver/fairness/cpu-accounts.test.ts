import { describe, expect, test } from 'vitest'
import { hasReason } from '../../core/index.ts'
import { defaultCpuLimits } from '../limits.ts'
import { CpuAccounts } from './cpu-accounts.ts'

function accounts() {
  const at = { now: 0, load: 1 }
  const cpu = new CpuAccounts(defaultCpuLimits, { now: () => at.now, load: () => at.load })
  const refused = (user: string): boolean => {
    try {
      cpu.check(user)
      return false
    } catch (error) {
      return hasReason(error, 'TooManyRequests')
    }
  }
  return { at, cpu, refused }
}

const { burstMs, maxDebtMs } = defaultCpuLimits

describe('CPU time is charged to the user who causes it [SEC-R505]', () => {
  test('a user beyond its share is refused while the event loop is saturated, others are not', () => {
    const { cpu, refused } = accounts()
    cpu.charge('greedy', burstMs + 100)
    cpu.charge('modest', 1)
    expect([refused('greedy'), refused('modest'), refused('new')]).toEqual([true, false, false])
    expect(cpu.rejected).toBe(1)
  })

  test('nobody is refused while the event loop has time to spare', () => {
    const { at, cpu, refused } = accounts()
    at.load = 0.5
    cpu.charge('greedy', maxDebtMs)
    expect(refused('greedy')).toBe(false)
  })

  test('a debt is paid with time, faster the fewer users are active', () => {
    const paid = (users: number): number => {
      const { at, cpu, refused } = accounts()
      for (let user = 1; user < users; user++) cpu.charge(`u${user}`, 0)
      cpu.charge('greedy', burstMs + 1000)
      while (refused('greedy')) {
        at.now += 50
        for (let user = 1; user < users; user++) cpu.charge(`u${user}`, 0)
      }
      return at.now
    }
    expect(paid(1)).toBe(1_000)
    expect(paid(4)).toBeGreaterThan(3_000)
  })

  test('no debt grows without end', () => {
    const { at, cpu, refused } = accounts()
    cpu.charge('greedy', 1e9)
    at.now += maxDebtMs
    expect(refused('greedy')).toBe(false)
  })

  test('the refusal says when to come again', () => {
    const { cpu } = accounts()
    cpu.charge('greedy', burstMs + 1_500)
    expect(() => cpu.check('greedy')).toThrow(
      expect.objectContaining({ details: { retryAfterSeconds: 2 } }),
    )
  })
})
