import { expect, onTestFinished, test } from 'vitest'
import { onAbort, unlessAborted } from './abort.ts'

test('a signal that guards very many is no leak to Node.js', async () => {
  const warnings: Error[] = []
  const note = (warning: Error): number => warnings.push(warning)
  process.on('warning', note)
  onTestFinished(() => void process.off('warning', note))
  const { signal } = new AbortController()
  for (let index = 0; index < 50; index++) onAbort(signal, () => {})
  await new Promise((resolve) => setImmediate(resolve))
  expect(warnings).toEqual([])
})

test('nobody is called after he has said goodbye', () => {
  const controller = new AbortController()
  const called: string[] = []
  onAbort(controller.signal, () => called.push('stays'))
  onAbort(controller.signal, () => called.push('goes'))()
  controller.abort()
  expect(called).toEqual(['stays'])
})

test('whoever aborts gets his reason, and the others what they wait for', async () => {
  const controller = new AbortController()
  const shared = Promise.resolve('value')
  const gone = unlessAborted(new Promise(() => {}), controller.signal)
  controller.abort(new Error('enough'))
  await expect(gone).rejects.toThrow('enough')
  await expect(unlessAborted(shared, controller.signal)).rejects.toThrow('enough')
  await expect(unlessAborted(shared, undefined)).resolves.toBe('value')
  await expect(unlessAborted(shared, new AbortController().signal)).resolves.toBe('value')
})
