export { type CutReason, type Session, type SessionFacts } from './session.ts'
export { SessionBook, type SessionListener } from './session-book.ts'
export { sessionKind } from './session-kind.ts'
