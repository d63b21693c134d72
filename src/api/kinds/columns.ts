import type { KubeObject } from '../../core/index.ts'
import { humanDuration } from './human-duration.ts'
import type { Column } from './kind-definition.ts'

/** How long ago `time` was, for people; `<unknown>` when it is not known. */
export function timeSince(time: unknown, now: number): string {
  if (typeof time !== 'string') return '<unknown>'
  const then = Date.parse(time)
  return Number.isNaN(then) ? '<unknown>' : humanDuration(now - then)
}

/** A column of text. */
export const column = (
  name: string,
  description: string,
  cell: (object: KubeObject, now: number) => string | number,
): Column => ({ name, type: 'string', description, cell })

/** A column of text that only `-o wide` shows. */
export const wideColumn = (
  name: string,
  description: string,
  cell: (object: KubeObject, now: number) => string | number,
): Column => ({ ...column(name, description, cell), priority: 1 })

/** The column with the object's name. */
export const nameColumn: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name of the object, unique among its kind in its namespace.',
  cell: (object) => object.metadata.name,
}

/** The column with the time since the object was created. */
export const ageColumn = column('Age', 'Time since the object was created.', (object, now) =>
  timeSince(object.metadata.creationTimestamp, now),
)

/** The column with the moment the object was created. */
export const createdAtColumn: Column = {
  name: 'Created At',
  type: 'date',
  description: 'When the object was created.',
  cell: (object) => object.metadata.creationTimestamp ?? null,
}
