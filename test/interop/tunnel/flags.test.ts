import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import type { OptionDeclaration, OptionTable } from '../../../src/core/index.ts'
import { tunnelAgentOptions, tunnelServerOptions } from '../../../src/tunnel/options/index.ts'
import { findPeer, pathOrReason } from '../../support/peers.ts'

/** The flags that a program of upstream's shows, and the default of each as it shows it. */
function flagsOf(program: string): Map<string, string> {
  const help = execFileSync(program, ['--help'], { encoding: 'utf8' })
  const lines = [...help.matchAll(/^ {2}(?:-\w, | {4})--([a-z-]+)(.*)$/gm)]
  return new Map(
    lines.map(([, name = '', text = '']) => {
      const shown = /\(default (.*)\)$/.exec(text)?.[1] ?? ''
      return [name, shown.replaceAll('"', '')]
    }),
  )
}

/** A default of ours as Go shows it: nothing where it is nothing. */
function shown(declaration: OptionDeclaration): string {
  const value = 'default' in declaration ? declaration.default : undefined
  if (declaration.type === 'duration') return duration(Number(value ?? 0))
  const text = Array.isArray(value) ? value.join(',') : String(value ?? '')
  return text === '0' || text === 'false' ? '' : text
}

function duration(ms: number): string {
  const seconds = ms / 1_000
  if (seconds === 0) return ''
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 3_600)}h${(seconds / 60) % 60}m0s`
}

const ends = [
  ['server', 'konnectivity-server-0.36', tunnelServerOptions],
  ['agent', 'konnectivity-agent-0.36', tunnelAgentOptions],
] as const

/** New at every start, of no effect here, or the same in other words; and `keepalive-time`, which the page names. */
const ownDefaults = {
  server: ['server-id', 'log-backtrace-at', 'stderrthreshold', 'tls-min-version', 'keepalive-time'],
  agent: ['agent-id', 'log-backtrace-at', 'stderrthreshold', 'lease-label'],
}

describe.each(ends)('the %s', (end, name, options: OptionTable) => {
  const program = pathOrReason(findPeer(name))

  test.skipIf(program === undefined)(
    '[TUN-F1, TUN-F2] takes every flag that upstream shows, with its default',
    () => {
      const flags = flagsOf(program ?? '')
      flags.delete('help')
      expect(flags.size).toBeGreaterThan(35)
      expect([...flags.keys()].filter((flag) => !Object.hasOwn(options, flag))).toEqual([])
      const different = [...flags].filter(([flag, theirs]) => {
        const declaration = options[flag]
        return declaration !== undefined && shown(declaration) !== theirs
      })
      const names = different.map(([flag]) => flag)
      expect(names.filter((flag) => !ownDefaults[end].includes(flag))).toEqual([])
    },
  )
})
