import { expect, test } from 'vitest'
import { pluginHostOf } from './cluster-source.ts'
import type { Io } from './io.ts'

test('a signal to a command ends the plugins that it runs [SEC-R2403]', async () => {
  const never = new AbortController().signal
  const io: Io = {
    env: { KUBERC: 'off' },
    interactive: false,
    columns: 80,
    isRoot: false,
    homeDirectory: '/nowhere',
    stdout: () => {},
    stderr: () => {},
    drain: new AbortController().signal,
    kill: never,
  }
  expect((await pluginHostOf(io)).interrupt).toBe(io.drain)
})
