#if THREAD_SANITIZER
    package import Basics

    package typealias Mutex<State: ~Copyable> = SanitizedMutex<State>
#endif
