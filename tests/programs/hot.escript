%% Two functions that do all the work, one of them twice as much.
%% No round is as long as the one before: a period of its own could fit the sampling rate.
-module(hot).
-mode(compile).

light(0, Sum) -> Sum;
light(N, Sum) -> light(N - 1, (Sum * 31 + N) rem 65521).

heavy(0, Sum) -> Sum;
heavy(N, Sum) -> heavy(N - 1, (Sum * 31 + N) rem 65521).

round(_, Sum) ->
    N = 50000 + Sum rem 100000,
    Sum + light(N, 1) + heavy(2 * N, 1).

main(_) ->
    io:format("~p~n", [lists:foldl(fun round/2, 0, lists:seq(1, 1000))]).
