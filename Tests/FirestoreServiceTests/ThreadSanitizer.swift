#if THREAD_SANITIZER
    internal import Basics

    typealias Mutex<State: ~Copyable> = SanitizedMutex<State>
#endif
