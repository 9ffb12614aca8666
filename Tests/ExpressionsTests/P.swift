import Testing
@Suite(.timeLimit(.minutes(20))) struct PlaceholderTests {}
